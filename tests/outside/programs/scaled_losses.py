"""Scales losses so that gradients of half precision do not vanish, and unscales averages before clipping them."""

import functools
import warnings

import gleaner.torch as gln
import torch

gln.init()


def cpu_scaler():
    """Returns PyTorch's class GradScaler, for CPU tensors.

    Older versions have only that of GPUs, of which these parts are faked here: checks for a GPU, in constructors and in
    scale(), and two functions that run on a GPU alone.
    """
    if hasattr(torch, "amp") and hasattr(torch.amp, "GradScaler"):
        return functools.partial(torch.amp.GradScaler, "cpu")
    from torch.cuda.amp import grad_scaler

    library = torch.library.Library("aten", "IMPL")
    library.impl("_amp_foreach_non_finite_check_and_unscale_", unscale, "CPU")
    library.impl("_amp_update_scale_", update_scale, "CPU")
    grad_scaler.amp_definitely_not_available = lambda: False
    grad_scaler._MultiDeviceReplicator.__init__ = lambda each, tensor: vars(each).update(
        master=tensor, _per_device_tensors={}
    )

    class GradScaler(grad_scaler.GradScaler):
        kept = library

        def scale(self, loss):
            if self._scale is None:
                self._lazy_init_scale_growth_tracker(loss.device)
            return loss * self._scale

    return GradScaler


def unscale(gradients, found_inf, inverse_scale):
    for gradient in gradients:
        if not gradient.isfinite().all():
            found_inf.fill_(1)
        gradient.mul_(inverse_scale)


def update_scale(scale, growth_tracker, found_inf, growth_factor, backoff_factor, growth_interval):
    if found_inf.item():
        scale.mul_(backoff_factor)
        growth_tracker.zero_()
    else:
        growth_tracker.add_(1)
        if growth_tracker.item() == growth_interval:
            scale.mul_(growth_factor)
            growth_tracker.zero_()
    return scale


def model_of():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))


def loss_of(model, rank, step):
    return model(torch.arange(12.0).view(3, 4) * (rank + 1) / (step + 1)).square().mean()


def averaged(model, step):
    """Gives the model the average of all ranks' gradients, computed in this process alone."""
    model.zero_grad()
    for rank in range(gln.size()):
        (loss_of(model, rank, step) / gln.size()).backward()


def distributed(model, **more):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return gln.DistributedOptimizer(optimizer, model.named_parameters(), **more)


def crossing(model):
    return gln.CrossBarrier(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), model)


GradScaler = cpu_scaler()
OVERFLOW = 2  # the step in which the last rank's loss is infinite
for clipping in (True, False):
    for wrap in (distributed, lambda model: distributed(model, wait="step"), crossing):
        waits = wrap is distributed
        model, expected = model_of(), model_of()
        optimizer = wrap(model)
        plain = torch.optim.SGD(expected.parameters(), lr=0.1, momentum=0.9)
        scaler = GradScaler(init_scale=1024.0, growth_interval=3)
        assert scaler.is_enabled()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for step in range(6):
                optimizer.zero_grad()
                loss = loss_of(model, gln.rank(), step)
                if step == OVERFLOW and gln.rank() == gln.size() - 1:
                    loss = loss * float("inf")
                scaler.scale(loss).backward()
                if not waits:
                    optimizer.synchronize()
                if clipping:
                    scaler.unscale_(optimizer)
                    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
                scaler.step(optimizer)
                scaler.update()
                if step == OVERFLOW:
                    assert scaler.get_scale() == 512, "all ranks must skip this step"
                    continue
                averaged(expected, step)
                if clipping:
                    torch.nn.utils.clip_grad_norm_(expected.parameters(), 0.01)
                plain.step()
        assert scaler.get_scale() == 1024, "it grows after three steps"
        optimizer.synchronize()
        for found, wanted in zip(model.parameters(), expected.parameters()):
            assert torch.allclose(found, wanted, rtol=1e-4, atol=1e-6), (clipping, found, wanted)

print("ok")
