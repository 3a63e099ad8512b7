"""Sums forever, but worker 1 ends in step 5, in the given way: ending.py exit STATUS | kill | raise."""

from __future__ import annotations

import os
import signal
import sys

import gleaner
import numpy


def main() -> None:
    how = sys.argv[1]
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # `gleaner run` gives a slow rank too little time to report
    gleaner.init()
    array = numpy.ones(1000, numpy.float32)
    for step in range(100000):
        if gleaner.rank() == 1 and step == 5:
            if how == "exit":
                sys.exit(int(sys.argv[2]))
            if how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raise RuntimeError("the loss is not a number")
        gleaner.push_pull(array, name="x")


main()
