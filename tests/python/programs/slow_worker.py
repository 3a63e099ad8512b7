"""Makes steps of a few tensors, in which one worker computes longer: slow_worker.py STEPS WORKER SECONDS."""

from __future__ import annotations

import sys
import time

import gleaner
import numpy

TENSORS = ("last layer", "middle", "first layer")

if __name__ == "__main__":
    steps, slow, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    gleaner.init()
    gradients = {name: numpy.full(300_000, gleaner.rank() + 1, numpy.float32) for name in TENSORS}
    for _ in range(steps):
        time.sleep(0.01 + (seconds if gleaner.rank() == slow else 0))
        handles = [gleaner.push_pull_async(gradient, name=name) for name, gradient in gradients.items()]
        for handle in handles:
            gleaner.synchronize(handle)
    gleaner.shutdown()
