"""Trains with an optimizer that contains another one and steps twice; wraps optimizers that cannot be wrapped."""

import gleaner.torch as gln
import torch

gln.init()


class Sam(torch.optim.Optimizer):
    """Steps to where the loss is worst nearby, and from there steps with another optimizer. It has two ways of use."""

    def __init__(self, params, base, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base_optimizer = base(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups

    @torch.no_grad()
    def first_step(self, zero_grad=False):
        norm = torch.stack([p.grad.norm() for group in self.param_groups for p in group["params"]]).norm()
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["old"] = p.clone()
                p.add_(p.grad, alpha=group["rho"] / norm.item())
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def second_step(self, zero_grad=False):
        for group in self.param_groups:
            for p in group["params"]:
                p.copy_(self.state[p]["old"])
        self.base_optimizer.step()
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def step(self, closure=None):
        closure = torch.enable_grad()(closure)
        self.first_step(zero_grad=True)
        closure()
        self.second_step()


class AveragesItself(torch.optim.SGD):
    def synchronize(self):
        pass


def model_of(seed=1):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))


def loss_of(model, step):
    return model(torch.arange(12.0).view(2, 6) / (step + 1)).square().mean()


def distributed(optimizer, model):
    return gln.DistributedOptimizer(optimizer, model.named_parameters())


def same(model, expected):
    return all(torch.equal(a, b) for a, b in zip(model.parameters(), expected.parameters()))


# Each rank has the same data, so results are those of one process.
for with_closure in (False, True):
    for wait in ("backward", "step"):
        model, expected = model_of(), model_of()
        plain = Sam(expected.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
        ours = Sam(model.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
        ours = gln.DistributedOptimizer(ours, model.named_parameters(), wait=wait)
        for step in range(3):
            for optimizer, trained in ((plain, expected), (ours, model)):
                averages_late = optimizer is ours and wait == "step" and not with_closure

                def backward(optimizer=optimizer, trained=trained, step=step, averages_late=averages_late):
                    loss_of(trained, step).backward()
                    if averages_late:
                        optimizer.synchronize()

                backward()
                if with_closure:
                    optimizer.step(backward)
                    optimizer.zero_grad()
                else:
                    optimizer.first_step(zero_grad=True)
                    backward()
                    optimizer.second_step(zero_grad=True)
        assert same(model, expected), (with_closure, wait)

# Optimizers that cannot work are refused.
model = model_of()
for refused in (Sam(model.parameters(), torch.optim.SGD, lr=0.1), torch.optim.LBFGS(model.parameters())):
    try:
        gln.CrossBarrier(refused, model)
    except gln.GleanerError as error:
        assert "DistributedOptimizer" in str(error)
    else:
        raise AssertionError(f"CrossBarrier took {refused}")
try:
    distributed(AveragesItself(model.parameters(), lr=0.1), model)
except gln.GleanerError as error:
    assert "synchronize" in str(error)
else:
    raise AssertionError("an optimizer that averages by itself was wrapped")

print("ok")
