"""Broadcasts and sums until an interrupt: interrupts.py numpy|torch. With `torch` the program trains instead.

The program drops all memory as soon as it can.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator

import gleaner
import numpy


def with_numpy() -> Iterator[None]:
    gleaner.init()
    while True:
        handles = [gleaner.push_pull_async(numpy.ones(1 << 18, numpy.float32), name=f"array.{i}") for i in range(4)]
        gleaner.broadcast(numpy.ones(1 << 16, numpy.float32))
        for handle in handles:
            gleaner.synchronize(handle)
        yield


def with_torch() -> Iterator[None]:
    import gleaner.torch as gln
    import torch

    torch.set_num_threads(1)
    gln.init()
    model = torch.nn.Sequential(*[torch.nn.Linear(300, 300) for _ in range(5)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer = gln.DistributedOptimizer(optimizer, model.named_parameters())
    while True:
        optimizer.zero_grad(set_to_none=True)
        model(torch.ones(2, 300)).square().mean().backward()
        optimizer.step()
        yield


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # this process may have started with SIGINT ignored
    steps = with_torch() if "torch" in sys.argv else with_numpy()
    if "torch" in sys.argv:
        next(steps)  # importing torch takes long
    print("begins", flush=True)
    for _ in steps:
        pass
