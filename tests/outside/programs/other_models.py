"""Rank 1 trains another model than the other ranks: other_models.py deeper|shallower|bias."""

import sys

import gleaner.torch as gln
import torch

gln.init()
odd = gln.rank() == 1
layers = {"deeper": 3 if odd else 2, "shallower": 1 if odd else 2, "bias": 2}[sys.argv[1]]
model = torch.nn.Sequential(*(torch.nn.Linear(4, 4, bias=sys.argv[1] != "bias" or not odd) for _ in range(layers)))
optimizer = gln.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
for _ in range(3):
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
