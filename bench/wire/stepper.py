"""A worker that sums one tensor in each step until a file exists, and then writes when each step ended.

    stepper.py BYTES FILE

Writes one line of JSON with `ends`, a list of seconds on this machine's monotonic clock, which all hosts of a lab
share."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import gleaner
import numpy


def main() -> None:
    gleaner.init()
    data = numpy.ones(int(sys.argv[1]) // 4, numpy.float32)
    stop = Path(sys.argv[2])
    ends: list[float] = []
    stopping = False
    while not stopping:
        data[0] = 2 if stop.exists() else 1
        total = gleaner.push_pull(data, name="step", average=False)
        ends.append(time.monotonic())
        stopping = total[0] > gleaner.size()  # in the same step on every worker
    gleaner.shutdown()
    print(json.dumps({"ends": ends}))


if __name__ == "__main__":
    main()
