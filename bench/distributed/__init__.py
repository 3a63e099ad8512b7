"""Measures backend gleaner of torch.distributed beside Gloo."""
