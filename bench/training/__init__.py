"""Compares training steps with their limit. The GPU is simulated by waits; autograd's hooks and communication are
real."""
