"""Rank 1 does something that does not match the other ranks: mismatch.py
size|type|name|operation|order|accumulation."""

from __future__ import annotations

import signal
import sys

import gleaner
import numpy

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # `gleaner run` gives a slow rank too little time to report
    gleaner.init()
    odd = gleaner.rank() == 1
    array = numpy.ones(5 if odd and sys.argv[1] == "size" else 4, "f8" if odd and sys.argv[1] == "type" else "f4")
    name = "odd" if odd and sys.argv[1] == "name" else "weight"
    try:
        if sys.argv[1] == "order":
            for each in ("a", "b"):
                gleaner.push_pull(array, name=each)
            for each in ("b", "a") if odd else ("a", "b"):
                gleaner.push_pull(array, name=each)
        elif odd and sys.argv[1] == "accumulation":
            gleaner.accumulate(array, name=name)
        else:
            gleaner.push_pull(array, name=name, average=not (odd and sys.argv[1] == "operation"))
    except gleaner.GleanerError as error:
        print(f"told: {error}", flush=True)
        gleaner.shutdown(failed=True)
        sys.exit(3)
