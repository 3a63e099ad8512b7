"""Calls to C without a timeout of their own, made on another thread so that Ctrl-C reaches the one that waits.

A call that is interrupted goes on in C. Its thread then owns what the call uses: memory, and a session that it opens.
"""

from __future__ import annotations

import threading
from typing import Callable, Generic, TypeVar

T = TypeVar("T")

# Threads wait for at most this long at a time, so that Python can run signal handlers in between.
SLICE_SECONDS = 0.25


class Aside(Generic[T]):
    """One call on its way. `call` is to refer to all memory that it uses; it must not raise.

    Until release() the answer is in danger of losing its owner: an interrupt may strike anywhere. If abandon() comes
    first, `orphaned` gets the answer, as soon as there is one.
    """

    def __init__(self, call: Callable[[], T], orphaned: Callable[[T], object] = lambda _: None) -> None:
        self._call, self._orphaned = call, orphaned
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._answers: list[T] = []
        self._abandoned = False

    def wait(self) -> T:
        """Makes the call, and returns its answer."""
        if threading.current_thread() is not threading.main_thread():
            self._run()
            return self._answers[0]
        try:
            threading.Thread(target=self._run, name="gln-python", daemon=True).start()
        except RuntimeError:  # the interpreter is going down, and has no more threads
            self._run()
        while not self._done.wait(SLICE_SECONDS):
            pass
        return self._answers[0]

    def abandon(self) -> None:
        """Nobody is going to use the answer. Does nothing the second time."""
        with self._lock:
            orphans = [] if self._abandoned else list(self._answers)
            self._abandoned = True
        for answer in orphans:
            self._orphaned(answer)

    def _run(self) -> None:
        answer = self._call()
        with self._lock:
            self._answers.append(answer)
            abandoned = self._abandoned
        self._done.set()
        if abandoned:
            self._orphaned(answer)
