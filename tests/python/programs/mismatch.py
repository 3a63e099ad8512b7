"""Rank 1 declares a tensor differently from the others; argv says in which way."""

from __future__ import annotations

import sys

import gleaner
import numpy

if __name__ == "__main__":
    gleaner.init()
    odd = gleaner.rank() == 1
    array = numpy.ones(5 if odd and sys.argv[1] == "size" else 4, "f8" if odd and sys.argv[1] == "type" else "f4")
    try:
        gleaner.push_pull(array, name="odd" if odd and sys.argv[1] == "name" else "weight")
    except gleaner.GleanerError as error:
        print(f"told: {error}", flush=True)
        gleaner.shutdown(failed=True)
        sys.exit(3)
