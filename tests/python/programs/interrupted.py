"""Waits in a call that the test interrupts: interrupted.py CALL RANK.

Rank 0 gets SIGINT while it waits in CALL. It prints "waiting" while it waits in C, and "interrupted" when it has
dropped all memory that it passed to C. After a line on standard input it prints "leaving" and ends. Rank 1 makes the
same CALL after a line on standard input."""

from __future__ import annotations

import atexit
import signal
import sys
import threading
import time
from types import FrameType

import gleaner
import numpy

ELEMENTS = 1 << 22  # free() unmaps an allocation of this size, so that a later write to it crashes


def wait_in(call: str) -> None:
    array = numpy.ones(ELEMENTS, numpy.float32)
    if call == "broadcast":
        gleaner.broadcast(array, root_rank=1)
    elif call == "synchronize":
        gleaner.synchronize(gleaner.push_pull_async(array, name="array"))
    elif call == "shutdown":
        gleaner.push_pull_async(array, name="array")
        gleaner.shutdown()


def runs(frame: FrameType | None, function: str, file: str) -> bool:
    """Returns whether the stack of `frame` contains this function of this file."""
    while frame is not None:
        if frame.f_code.co_name == function and frame.f_code.co_filename.endswith(file):
            return True
        frame = frame.f_back
    return False


def main_thread_waits_in_c() -> bool:
    """Returns whether the main thread waits for a call in C, which it makes in slices or by another thread."""
    frames = sys._current_frames()
    main = frames.pop(threading.main_thread().ident)
    if runs(main, "wait", "gleaner/interruptible.py"):
        return any(runs(frame, "_make_call", "gleaner/interruptible.py") for frame in frames.values())
    return runs(main, "_in_slices", "gleaner/connection.py")


def announce() -> None:
    while not main_thread_waits_in_c():
        time.sleep(0.01)
    print("waiting", flush=True)


def rank_0(call: str) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # this process may have started with SIGINT ignored
    atexit.register(print, "leaving", flush=True)  # before the function that gleaner has registered
    announcer = threading.Thread(target=announce, daemon=True)
    try:
        if call == "init":
            announcer.start()
        gleaner.init()
        if call != "init":
            announcer.start()
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
