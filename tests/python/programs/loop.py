"""Sums the same tensor in STEPS steps (default: a million) or until a sum fails: loop.py [STEPS].

Prints "summing" when the sums work. On failure it prints "error after SECONDS: MESSAGE" to standard error, and exits
with status 3."""

from __future__ import annotations

import sys
import time

import gleaner
import numpy

if __name__ == "__main__":
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    start = time.monotonic()
    try:
        gleaner.init()
        data = numpy.full(1 << 18, gleaner.rank() + 1, numpy.float32)
        for step in range(steps):
            start = time.monotonic()
            total = gleaner.push_pull(data, name="loop", average=False)
            assert (total == sum(range(gleaner.size() + 1))).all()
            if step == 2:
                print("summing", flush=True)
        gleaner.shutdown()
    except gleaner.GleanerError as error:
        print(f"error after {time.monotonic() - start:.1f}: {error}", file=sys.stderr, flush=True)
        gleaner.shutdown(failed=True)
        sys.exit(3)
