"""Sums forever: exits_on_error.py [RANK SECONDS].

Prints "pid: PID" when the sums work. When a sum fails, prints "told: MESSAGE" and exits with status 5 at once, without
leaving the job. Rank RANK also exits, with status 6, once a sum takes SECONDS."""

from __future__ import annotations

import os
import sys
import threading

import gleaner
import numpy


def main(hasty: int = -1, seconds: int = 0) -> None:
    gleaner.init()
    data = numpy.ones(1 << 12, numpy.float32)
    step = 0
    while True:
        timer = threading.Timer(seconds, os._exit, (6,))
        if gleaner.rank() == hasty and step >= 5:
            timer.start()
        try:
            gleaner.push_pull(data, name="sum")
        except gleaner.GleanerError as error:
            os.write(1, f"told: {error}\n".encode())
            os._exit(5)
        timer.cancel()
        step += 1
        if step == 5:
            print(f"pid: {os.getpid()}", flush=True)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
