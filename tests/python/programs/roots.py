"""Ranks ask for different roots of one broadcast, which is an error on each rank, and then for the same root."""

from __future__ import annotations

import gleaner
import numpy

if __name__ == "__main__":
    gleaner.init()
    rank = gleaner.rank()
    array = numpy.full(3, rank + 1, "f4")
    try:
        gleaner.broadcast(array, 1 if rank == 2 else 0)
    except gleaner.InvalidArgumentError as error:
        print(f"told: {error}", flush=True)
    for root in (2, 0):
        print(f"value: {gleaner.broadcast(array, root)}", flush=True)
    gleaner.shutdown()
