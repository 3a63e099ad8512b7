"""Trains parameters whose gradients PyTorch negates lazily, with each kind of optimizer, and copies its state."""

import gleaner.torch as gln
import torch

gln.init()


class Adjoint(torch.autograd.Function):
    """Its derivative is -1, which it returns without computing it."""

    @staticmethod
    def forward(ctx, data):
        return -data

    @staticmethod
    def backward(ctx, gradient):
        return torch._neg_view(gradient.clone())


class Constant(torch.autograd.Function):
    """Its derivative is 0."""

    @staticmethod
    def forward(ctx, data):
        return data.detach().clone()

    @staticmethod
    def backward(ctx, gradient):
        return torch._efficientzerotensor(gradient.shape)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.real = torch.nn.Parameter(torch.ones(1))
        self.imaginary = torch.nn.Parameter(torch.ones(1))
        self.several = torch.nn.Parameter(torch.ones(20_000))
        self.fixed = torch.nn.Parameter(torch.ones(4))

    def forward(self, scale):
        waves = torch.complex(self.real, self.imaginary).conj() * (1 + 2j)
        return (waves.imag + Adjoint.apply(self.several).sum() + Constant.apply(self.fixed).sum()).sum() * scale


def optimizer_of(kind, model):
    plain = torch.optim.SGD(model.parameters(), lr=0.25)
    if kind == "cross":
        return gln.CrossBarrier(plain, model)
    more = {"step": {"wait": "step"}, "asynchronous": {"asynchronous": True}}.get(kind, {})
    return gln.DistributedOptimizer(plain, model.named_parameters(), **more)


for kind in ("backward", "step", "cross", "asynchronous"):
    # Without averages the gradient that is lazily zero stays, and PyTorch cannot zero it in place.
    for set_to_none in (True,) if kind == "asynchronous" else (True, False):
        model = Model()
        optimizer = optimizer_of(kind, model)
        for _ in range(3):
            model(gln.rank() + 1.0).backward()
            if kind == "backward":
                mean = sum(range(1, gln.size() + 1)) / gln.size()
                assert model.several.grad[0] == -mean and model.imaginary.grad.item() == -mean, model.several.grad
            optimizer.step()
            optimizer.zero_grad(set_to_none=set_to_none)
        optimizer.synchronize()
        steps = sum(range(1, gln.size() + 1)) * 3 * 0.25
        if kind != "asynchronous":  # which adds changes, and does not average them
            steps /= gln.size()
        found = [each.detach()[-1].item() for each in (model.real, model.imaginary, model.several, model.fixed)]
        assert found == [1 - 2 * steps, 1 + steps, 1 + steps, 1], (kind, found)

# A parameter that is itself such a view, and a running sum.
numbers = torch.tensor([3 + 2j])
model = torch.nn.Module()
model.phase = torch.nn.Parameter(numbers.conj().imag)
assert model.phase.is_neg()
for kind in ("backward", "asynchronous"):
    optimizer = optimizer_of(kind, model)
    for _ in range(2):
        optimizer.zero_grad()
        model.phase.sum().backward()
        optimizer.step()
    optimizer.synchronize()
steps = 2 * 0.25 * (1 + gln.size())
assert model.phase.item() == -2 - steps and numbers.imag.item() == 2 + steps, model.phase

# The state of an optimizer, and of an elastic program.
model = torch.nn.Linear(2, 1, bias=False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
if gln.rank() == 0:
    optimizer.state[model.weight]["momentum_buffer"] = torch.tensor([[1 + 1j, 1 + 2j]]).conj().imag
gln.broadcast_optimizer_state(optimizer)
assert optimizer.state[model.weight]["momentum_buffer"].tolist() == [[-1, -2]]
state = gln.elastic.ObjectState(phase=torch.tensor([1j]).conj().imag * (gln.rank() == 0))
state.phase = torch.tensor([1j]).conj().imag if gln.rank() == 0 else None
state.broadcast(0)
assert state.phase.item() == -1

print("ok")
