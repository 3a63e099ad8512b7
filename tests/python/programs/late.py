"""Rank 0 does something else for argv[2] seconds before its step argv[1], as if it wrote or read a checkpoint."""

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
