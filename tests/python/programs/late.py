"""Rank 0 waits before a step, as if it read or wrote a checkpoint: late.py STEP FILE. It goes on once FILE exists."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import gleaner
import numpy

if __name__ == "__main__":
    gleaner.init()
    late, file = int(sys.argv[1]), Path(sys.argv[2])
    for step in range(late + 2):
        while gleaner.rank() == 0 and step == late and not file.exists():
            time.sleep(0.02)
        gleaner.push_pull(numpy.ones(1000, "f4"), name="weight")
    print("done", flush=True)
