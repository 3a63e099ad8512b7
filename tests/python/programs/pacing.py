"""Makes ten steps per second: pacing.py STEPS."""

from __future__ import annotations

import sys
import time

import gleaner
import numpy

if __name__ == "__main__":
    gleaner.init()
    data = numpy.ones(1 << 18, numpy.float32)
    for _ in range(int(sys.argv[1])):
        gleaner.push_pull(data, name="x")
        time.sleep(0.1)
    print("done", flush=True)
