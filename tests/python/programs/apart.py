"""Adds to a running sum. Rank 0 ends long before the other ranks."""

from __future__ import annotations

import time

import gleaner
import numpy

if __name__ == "__main__":
    gleaner.init()
    one = numpy.ones(100_000, numpy.int32)
    for step in range(5 if gleaner.rank() == 0 else 20):
        total = gleaner.accumulate(one, "counter")
        assert (total > step).all()
        time.sleep(0.05)
    gleaner.shutdown()
    print(f"rank done with {total.min()} to {total.max()}", flush=True)
