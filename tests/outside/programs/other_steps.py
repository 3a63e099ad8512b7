"""Trains with optimizers of other packages, whose step() takes no closure, or more arguments than a closure."""

import gleaner.torch as gln
import torch

gln.init()


class Muon(torch.optim.Optimizer):
    """Makes updates orthogonal; its step() takes nothing."""

    def __init__(self, params, lr=0.02, momentum=0.95):
        super().__init__(params, dict(lr=lr, momentum=momentum))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                buffer = self.state[p].setdefault("momentum_buffer", torch.zeros_like(p))
                buffer.mul_(group["momentum"]).add_(p.grad)
                update = buffer.reshape(len(buffer), -1)
                p.add_((update / (update.norm() + 1e-7)).view_as(p), alpha=-group["lr"])
        return "stepped"


class Scaled(torch.optim.Optimizer):
    """Divides gradients by a scale, which step() takes."""

    def __init__(self, params, lr=0.1):
        super().__init__(params, dict(lr=lr))

    @torch.no_grad()
    def step(self, scale=1.0, *, clip=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.add_(p.grad if clip is None else p.grad.clamp(-clip, clip), alpha=-group["lr"] / scale)
        return scale


class Soap(torch.optim.Adam):
    """Takes its closure after another argument."""

    def step(self, refresh=False, loss_closure=None):
        loss = super().step(loss_closure)
        return refresh, loss


def model_of(seed=1):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))


def loss_of(model, step):
    return model(torch.arange(12.0).view(2, 6) / (step + 1)).square().mean()


def same(model, expected):
    return all(torch.equal(a, b) for a, b in zip(model.parameters(), expected.parameters()))


def wraps():
    """Each rank has the same data, so results are those of one process."""
    yield lambda optimizer, model: gln.DistributedOptimizer(optimizer, model.named_parameters())
    yield lambda optimizer, model: gln.DistributedOptimizer(optimizer, model.named_parameters(), wait="step")
    yield lambda optimizer, model: gln.CrossBarrier(optimizer, model)


cases = [(Muon, (), {}, "stepped"), (Scaled, (2,), {}, 2), (Scaled, (), {"scale": 4, "clip": 0.01}, 4)]
cases += [(Soap, (), {"refresh": True}, (True, None)), (Soap, (True,), {}, (True, None))]
for kind, arguments, named, result in cases:
    for wrap in wraps():
        model, expected = model_of(), model_of()
        optimizer, plain = wrap(kind(model.parameters()), model), kind(expected.parameters())
        scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        its_scheduler = torch.optim.lr_scheduler.ExponentialLR(plain, 0.5)
        for step in range(3):
            optimizer.zero_grad()
            loss_of(model, step).backward()
            got = optimizer.step(*arguments, **named)
            assert got == result or (got is None and hasattr(optimizer, "update_overdue")), got
            scheduler.step()
            plain.zero_grad()
            loss_of(expected, step).backward()
            assert plain.step(*arguments, **named) == result
            its_scheduler.step()
        optimizer.synchronize()
        assert same(model, expected), (kind, arguments, named)

# Closures, by place and by name.
for arguments in (lambda closure: ((False, closure), {}), lambda closure: ((), {"loss_closure": closure})):
    model, expected = model_of(), model_of()
    optimizer = gln.DistributedOptimizer(Soap(model.parameters()), model.named_parameters())
    plain = Soap(expected.parameters())
    for step in range(2):
        for each, trained in ((optimizer, model), (plain, expected)):
            share = 1 if each is plain else gln.rank() * 2 / (gln.size() - 1)  # 1 on the average of all ranks

            def closure(each=each, trained=trained, step=step, share=share):
                each.zero_grad()
                loss = loss_of(trained, step) * share
                loss.backward()
                return loss

            args, kwargs = arguments(closure)
            refresh, loss = each.step(*args, **kwargs)
            assert not refresh and torch.is_tensor(loss)
    assert all(torch.allclose(a, b) for a, b in zip(model.parameters(), expected.parameters()))
try:
    model = model_of()
    gln.CrossBarrier(Soap(model.parameters()), model).step(loss_closure=lambda: None)
except gln.GleanerError as error:
    assert "closure" in str(error)
else:
    raise AssertionError("CrossBarrier took a closure")

# Each rank for itself: the sum of all changes is n times that of one process in the first step.
for kind, arguments, named, result in cases:
    model, expected = model_of(), model_of()
    optimizer = gln.DistributedOptimizer(kind(model.parameters()), model.named_parameters(), asynchronous=True)
    plain = kind(expected.parameters())
    loss_of(model, 0).backward()
    loss_of(expected, 0).backward()
    assert optimizer.step(*arguments, **named) == result == plain.step(*arguments, **named)
    optimizer.synchronize()
    for p, after, before in zip(model.parameters(), expected.parameters(), model_of().parameters()):
        assert torch.allclose(p - before, gln.size() * (after - before), rtol=1e-4, atol=1e-6)

print("ok")
