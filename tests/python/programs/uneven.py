"""Ranks make different numbers of steps: uneven.py STEPS... return|raise|exit|die.

Rank 0 makes the first number of steps, rank 1 the second, and so on. The last argument tells how the rank with the
fewest steps ends.
"""

from __future__ import annotations

import os
import signal
import sys

import gleaner
import numpy

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # `gleaner run` gives a slow rank too little time to report
    gleaner.init()
    counts = [int(count) for count in sys.argv[1:-1]]
    mine = counts[gleaner.rank()]
    try:
        for _ in range(mine):
            gleaner.push_pull(numpy.ones(1000, "f4"), name="weight")
    except gleaner.GleanerError as error:
        print(f"told: {error}", flush=True)
        gleaner.shutdown(failed=True)
        sys.exit(3)
    if mine == min(counts) and sys.argv[-1] == "raise":
        raise ValueError("on purpose")
    if mine == min(counts) and sys.argv[-1] == "exit":
        sys.exit(4)
    if mine == min(counts) and sys.argv[-1] == "die":
        os._exit(1)
