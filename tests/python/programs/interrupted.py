"""Rank 0 is interrupted (SIGINT) while it waits in the call that argv names; rank 1 takes part when told to on stdin.

Rank 0 writes "waiting" when it is about to wait, and "interrupted" when it has dropped all memory that it gave to C.
After a line on standard input it ends.
"""

from __future__ import annotations

import signal
import sys

import gleaner
import numpy

ELEMENTS = 1 << 22  # an allocation of this size is unmapped when it is freed: to write to it then is a crash


def wait_in(call: str) -> None:
    array = numpy.ones(ELEMENTS, numpy.float32)
    if call == "broadcast":
        gleaner.broadcast(array, root_rank=1)
    elif call == "synchronize":
        gleaner.synchronize(gleaner.push_pull_async(array, name="array"))
    elif call == "shutdown":
        gleaner.push_pull_async(array, name="array")
        gleaner.shutdown()


def rank_0(call: str) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started us with SIGINT ignored
    try:
        if call == "init":
            print("waiting", flush=True)
        gleaner.init()
        print("waiting", flush=True)
        wait_in(call)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    sys.stdin.readline()


def rank_1(call: str) -> None:
    try:
        gleaner.init()
        if call != "init":
            sys.stdin.readline()
        wait_in("broadcast" if call == "broadcast" else "synchronize")
        print("took part", flush=True)
    except gleaner.GleanerError as error:
        print(f"told: {error}", flush=True)


if __name__ == "__main__":
    {"0": rank_0, "1": rank_1}[sys.argv[2]](sys.argv[1])
