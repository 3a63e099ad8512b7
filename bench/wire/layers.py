"""A worker that trains 16 equal layers with DistributedOptimizer, whose hooks start gradients as they become ready.

    layers.py BYTES STEPS

BYTES: of a layer's gradient. Writes one line of JSON as starts.py does."""

from __future__ import annotations

import json
import sys
import time

import gleaner.torch as gln
import torch

LAYERS, WARMUP = 16, 2


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
    begins, ends = [], []
    for _ in range(WARMUP + steps):
        begins.append(time.monotonic())
        optimizer.zero_grad()
        model(inputs).sum().backward()
        optimizer.step()
        ends.append(time.monotonic())
    rank = gln.rank()
    gln.shutdown()
    print(json.dumps({"worker": rank, "step_begins": begins[WARMUP:], "step_ends": ends[WARMUP:]}))


if __name__ == "__main__":
    main()
