"""Rank 0 sleeps before a step, as if it read or wrote a checkpoint: late.py STEP SECONDS."""

from __future__ import annotations

import sys
import time

import gleaner
import numpy

if __name__ == "__main__":
    gleaner.init()
    late, seconds = int(sys.argv[1]), float(sys.argv[2])
    for step in range(late + 2):
        if gleaner.rank() == 0 and step == late:
            time.sleep(seconds)
        gleaner.push_pull(numpy.ones(1000, "f4"), name="weight")
    print("done", flush=True)
