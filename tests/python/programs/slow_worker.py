"""Makes steps of a few tensors, in which one worker computes longer: slow_worker.py STEPS WORKER SECONDS [FOLDER].

With FOLDER, an empty folder, the worker begins to compute only when all others have passed on their gradients. So it is
the slowest one, however busy the machine is."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import gleaner
import numpy
from marks import Marks

TENSORS = ("last layer", "middle", "first layer")

if __name__ == "__main__":
    steps, slow, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    gleaner.init()
    marks = Marks(Path(sys.argv[4]), gleaner.rank(), gleaner.size()) if len(sys.argv) > 4 else None
    gradients = {name: numpy.full(300_000, gleaner.rank() + 1, numpy.float32) for name in TENSORS}
    for step in range(steps):
        if gleaner.rank() == slow:
            if marks is not None:
                marks.wait_for_others(step + 1)
            time.sleep(seconds)
        time.sleep(0.01)
        handles = [gleaner.push_pull_async(gradient, name=name) for name, gradient in gradients.items()]
        if marks is not None:
            marks.mark()
        for handle in handles:
            gleaner.synchronize(handle)
    gleaner.shutdown()
