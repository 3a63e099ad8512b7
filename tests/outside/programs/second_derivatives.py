"""Penalizes gradients: by backward(create_graph=True), which is refused, and by torch.autograd.grad()."""

import warnings

import gleaner.torch as gln
import torch

warnings.filterwarnings("ignore", message="Using backward")  # PyTorch advises against it, too
gln.init()


def model_of():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))


def loss_of(model, scale=1.0):
    return model(torch.arange(12.0).view(3, 4) * scale).square().mean()


def distributed(model, **more):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return gln.DistributedOptimizer(optimizer, model.named_parameters(), **more)


def crossing(model):
    return gln.CrossBarrier(torch.optim.SGD(model.parameters(), lr=0.1), model)


def penalized(model):
    """The loss plus the squared norm of its gradient."""
    loss = loss_of(model)
    gradients = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
    return loss + sum(each.square().sum() for each in gradients)


for wrap in (
    distributed,
    lambda model: distributed(model, wait="step"),
    lambda model: distributed(model, backward_passes_per_step=2),
    crossing,
):
    # A whole model; a loss whose gradient has no graph, since it is constant; a loss of inputs that need gradients.
    for loss in (
        loss_of,
        lambda model: model[0].weight.sum(),
        lambda model: loss_of(model, torch.ones(4, requires_grad=True)),
    ):
        model = model_of()
        optimizer = wrap(model)
        try:
            loss(model).backward(create_graph=True)
        except gln.GleanerError as error:
            assert "torch.autograd.grad(loss, parameters, create_graph=True)" in str(error)
        else:
            raise AssertionError("the graph of a gradient was dropped without a word")
        optimizer.zero_grad(set_to_none=True)

        expected = model_of()
        plain = torch.optim.SGD(expected.parameters(), lr=0.1)
        for _ in range(2):  # training goes on
            for each, trained in ((optimizer, model), (plain, expected)):
                each.zero_grad(set_to_none=True)
                penalized(trained).backward()
                each.step()
        optimizer.synchronize()
        assert all(torch.equal(a, b) for a, b in zip(model.parameters(), expected.parameters()))

# Asynchronous training averages no gradient, so its graph stays.
model = model_of()
optimizer = distributed(model, asynchronous=True)
loss_of(model).backward(create_graph=True)
penalty = sum(each.grad.square().sum() for each in model.parameters())
penalty.backward()
optimizer.step()
optimizer.zero_grad(set_to_none=True)

print("ok")
