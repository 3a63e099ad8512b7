"""A worker that trains 16 equal layers with DistributedOptimizer, whose hooks start gradients as they become ready.

    layers.py BYTES STEPS

BYTES: of a layer's gradient. Writes the times of its steps (step_times.py)."""

from __future__ import annotations

import sys

import gleaner.torch as gln
import torch
from step_times import WARMUP, StepTimes

LAYERS = 16


def main() -> None:
    bytes_, steps = (int(argument) for argument in sys.argv[1:3])
    gln.init()
    torch.set_num_threads(1)
    width = int((bytes_ / 4) ** 0.5)
    model = torch.nn.Sequential(*(torch.nn.Linear(width, width, bias=False) for _ in range(LAYERS)))
    optimizer = gln.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=1e-3), named_parameters=model.named_parameters()
    )
    inputs = torch.ones(4, width)
    times = StepTimes()
    for _ in range(WARMUP + steps):
        with times.step():
            optimizer.zero_grad()
            model(inputs).sum().backward()
            optimizer.step()
    rank = gln.rank()
    gln.shutdown()
    times.write(rank)


if __name__ == "__main__":
    main()
