"""Sums the same tensor in STEPS steps (default: a million) or until a sum fails: loop.py [STEPS [FILE]].

Prints "summing" when the sums work, and "further" after a step that has begun after FILE was created. On failure it
prints "error: MESSAGE" to standard error, and exits with status 3."""

from __future__ import annotations

import sys
from pathlib import Path

import gleaner
import numpy


def main(steps: int, file: Path | None) -> None:
    gleaner.init()
    data = numpy.full(1 << 18, gleaner.rank() + 1, numpy.float32)
    for step in range(steps):
        asked = file is not None and file.exists()
        total = gleaner.push_pull(data, name="loop", average=False)
        assert (total == sum(range(gleaner.size() + 1))).all()
        if step == 2:
            print("summing", flush=True)
        if asked:
            print("further", flush=True)
            file = None
    gleaner.shutdown()


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000, Path(sys.argv[2]) if len(sys.argv) > 2 else None)
    except gleaner.GleanerError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        gleaner.shutdown(failed=True)
        sys.exit(3)
