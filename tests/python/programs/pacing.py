"""Makes ten steps per second until a file exists: pacing.py FILE. Prints "step N" after every tenth step N."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import gleaner
import numpy

if __name__ == "__main__":
    gleaner.init()
    data = numpy.ones(1 << 18, numpy.float32)
    step, stopping = 0, False
    while not stopping:
        data[0] = Path(sys.argv[1]).exists()
        stopping = gleaner.push_pull(data, name="x")[0] > 0  # in the same step on every rank
        step += 1
        if step % 10 == 0:
            print(f"step {step}", flush=True)
        time.sleep(0.1)
