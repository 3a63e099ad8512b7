"""Sums different numbers in each step, and checks each sum, until a file exists: changing.py FILE [PAUSE].

Prints "summing" when the sums work, and at the end "N steps". A wrong sum ends the program with exit status 1, an error
of Gleaner with 3. After each step the program sleeps for PAUSE seconds (default: 0)."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import gleaner
import numpy

ELEMENTS = 1 << 18


def main(stop: Path, pause: float) -> None:
    gleaner.init()
    rank, size = gleaner.rank(), gleaner.size()
    places = numpy.arange(ELEMENTS, dtype=numpy.float32) % 1009
    step, stopping = 0, False
    while not stopping:
        data = places * (rank + 1) + step % 4096
        data[0] = stop.exists()
        total = gleaner.push_pull(data, name="changing", average=False)
        expected = places * (size * (size + 1) // 2) + size * (step % 4096)
        assert (total[1:] == expected[1:]).all(), f"rank {rank}: the sum of step {step} is wrong"
        stopping = total[0] > 0  # in the same step on every rank
        step += 1
        time.sleep(pause)
        if step == 3:
            print("summing", flush=True)
    gleaner.shutdown()
    print(f"{step} steps", flush=True)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 0)
    except gleaner.GleanerError as error:
        print(error, file=sys.stderr, flush=True)
        gleaner.shutdown(failed=True)
        sys.exit(3)
