"""Trains models whose weights are computed before each forward pass: by norms, by pruning, or by hooks."""

import gleaner.torch as gln
import torch
from torch import nn
from torch.nn.utils import parametrizations, prune

gln.init()


def standardized(layer):
    """Computes the weight in a hook of the program's own."""
    raw = layer.weight
    del layer._parameters["weight"]
    layer.register_parameter("raw", raw)
    layer.register_forward_pre_hook(lambda each, _: setattr(each, "weight", each.raw - each.raw.mean()))
    return layer


def by_magnitude(layer):
    return prune.l1_unstructured(layer, "weight", amount=0.3)


NORMS = (nn.utils.weight_norm, nn.utils.spectral_norm, by_magnitude, standardized, parametrizations.spectral_norm)


def model_of(norm):
    torch.manual_seed(1)
    return nn.Sequential(
        norm(nn.Linear(8, 16)), nn.Tanh(), nn.Sequential(norm(nn.Linear(16, 4)), norm(nn.Linear(4, 4)))
    )


for norm in NORMS:
    model, expected = model_of(norm), model_of(norm)
    ours = gln.CrossBarrier(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), model)
    plain = torch.optim.SGD(expected.parameters(), lr=0.1, momentum=0.9)
    plain = gln.DistributedOptimizer(plain, expected.named_parameters())
    for step in range(4):
        for optimizer, trained in ((ours, model), (plain, expected)):
            data = torch.full((3, 8), 1.0 + gln.rank() + step) * torch.arange(8)
            optimizer.zero_grad()
            trained(data).square().mean().backward()
            optimizer.step()
    ours.synchronize()
    for (name, found), wanted in zip(model.named_parameters(), expected.parameters()):
        assert torch.equal(found, wanted), (norm, name)
    model.eval(), expected.eval()
    with torch.no_grad():
        assert torch.equal(model(torch.ones(1, 8)), expected(torch.ones(1, 8))), norm

print("ok")
