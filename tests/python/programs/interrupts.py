"""Broadcasts and sums until it is interrupted, with memory that is dropped as soon as Python allows."""

from __future__ import annotations

import signal

import gleaner
import numpy

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started us with SIGINT ignored
    print("begins", flush=True)
    gleaner.init()
    while True:
        handles = [gleaner.push_pull_async(numpy.ones(1 << 18, numpy.float32), name=f"array.{i}") for i in range(4)]
        gleaner.broadcast(numpy.ones(1 << 16, numpy.float32))
        for handle in handles:
            gleaner.synchronize(handle)
