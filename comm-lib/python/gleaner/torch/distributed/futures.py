"""Futures whose callbacks run in the same order on all ranks.

A callback may call collectives, as those of DDP's PowerSGD hook do, and all ranks must call collectives in one order.
So callbacks run in the order in which they were added, one at a time, in a thread named gln-callback. Their collectives
have an order of their own (layers.py), since the program calls others meanwhile. A callback may wait for collectives
that it calls, and may not wait for a callback that was added later.
"""

from __future__ import annotations

import functools
import queue
import threading
from collections.abc import Sequence
from typing import Any, Callable

import torch

MOST_DEPTH = 3  # of callbacks in callbacks

_present = threading.local()


def depth() -> int:
    """Returns in how many callbacks the calling thread is: 0 in the program, 1 in a callback, 2 in a callback of it."""
    return getattr(_present, "depth", 0)


class OrderedFuture(torch.futures.Future):
    """A future of a work, or of a callback.

    Args:
        devices: GPUs of its tensors.
    """

    def __init__(self, devices: Sequence[torch.device] = ()) -> None:
        super().__init__(devices=list(devices))
        self._devices = list(devices)

    def then(self, callback: Callable[[Any], Any]) -> OrderedFuture:
        result = OrderedFuture(self._devices)

        def run() -> None:
            try:
                value = callback(self)
            except Exception as error:  # of the program
                result.set_exception(error)
            else:
                result.set_result(value)

        _thread(depth()).put((self, run))
        return result

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        self.then(callback)

    def call_at_end(self, function: Callable[[Any], Any]) -> torch.futures.Future[Any]:
        """Calls a function that calls no collectives, in any thread, and returns a future of its result."""
        return super().then(function)


@functools.cache
def _thread(at: int) -> queue.SimpleQueue[tuple[OrderedFuture, Callable[[], None]]]:
    """Returns the queue of the thread that runs callbacks which were added at a depth."""
    if at >= MOST_DEPTH:
        raise RuntimeError(f"callbacks of futures can be added in at most {MOST_DEPTH - 1} callbacks around them")
    added: queue.SimpleQueue[tuple[OrderedFuture, Callable[[], None]]] = queue.SimpleQueue()
    threading.Thread(target=_run, args=[at + 1, added], name="gln-callback", daemon=True).start()
    return added


def _run(at: int, added: queue.SimpleQueue[tuple[OrderedFuture, Callable[[], None]]]) -> None:
    _present.depth = at
    while True:
        future, callback = added.get()
        done = threading.Event()
        future.call_at_end(lambda _, done=done: done.set())
        done.wait()
        callback()
        del future, callback  # and so its tensors
