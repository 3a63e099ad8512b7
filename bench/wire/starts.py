"""A worker that sums several tensors in each step, which it starts in the order of their names, or, on every second
worker, in the opposite order.

    starts.py TENSORS BYTES STEPS equal|opposite

Writes the times of its steps (step_times.py)."""

from __future__ import annotations

import sys

import gleaner
import numpy
from step_times import WARMUP, StepTimes


def main() -> None:
    tensors, bytes_, steps = (int(argument) for argument in sys.argv[1:4])
    gleaner.init()
    data = {f"t{i:02}": numpy.ones(bytes_ // 4, numpy.float32) for i in range(tensors)}
    order = sorted(data)
    turns = sys.argv[4] == "opposite" and gleaner.rank() % 2 == 1
    times = StepTimes()
    for step in range(WARMUP + steps):
        gleaner.push_pull(numpy.zeros(1, numpy.float32), name="barrier")
        with times.step():
            # The first step starts all tensors in one order, so that the plan has them in this order.
            names = order[::-1] if turns and step > 0 else order
            handles = [gleaner.push_pull_async(data[name], name=name) for name in names]
            for handle in handles:
                gleaner.synchronize(handle)
    rank = gleaner.rank()
    gleaner.shutdown()
    times.write(rank)


if __name__ == "__main__":
    main()
