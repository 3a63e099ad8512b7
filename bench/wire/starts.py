"""A worker that sums several tensors in each step, which it starts in the order of their names, or, on every second
worker, in the opposite order.

    starts.py TENSORS BYTES STEPS equal|opposite

Writes one line of JSON with `worker`, and `step_begins` and `step_ends`, seconds on this machine's monotonic clock."""

from __future__ import annotations

import json
import sys
import time

import gleaner
import numpy

WARMUP = 2


def main() -> None:
    tensors, bytes_, steps = (int(argument) for argument in sys.argv[1:4])
    gleaner.init()
    data = {f"t{i:02}": numpy.ones(bytes_ // 4, numpy.float32) for i in range(tensors)}
    order = sorted(data)
    turns = sys.argv[4] == "opposite" and gleaner.rank() % 2 == 1
    begins, ends = [], []
    for step in range(WARMUP + steps):
        gleaner.push_pull(numpy.zeros(1, numpy.float32), name="barrier")
        begins.append(time.monotonic())
        # The first step starts all tensors in one order, so that the plan has them in this order.
        names = order[::-1] if turns and step > 0 else order
        handles = [gleaner.push_pull_async(data[name], name=name) for name in names]
        for handle in handles:
            gleaner.synchronize(handle)
        ends.append(time.monotonic())
    rank = gleaner.rank()
    gleaner.shutdown()
    print(json.dumps({"worker": rank, "step_begins": begins[WARMUP:], "step_ends": ends[WARMUP:]}))


if __name__ == "__main__":
    main()
