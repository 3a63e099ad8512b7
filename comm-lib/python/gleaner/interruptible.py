"""Makes calls to C that have no timeout on another thread, so that Ctrl-C can interrupt the thread that waits.

After an interrupt the call continues in C. Its thread then owns the memory that the call uses, and the session that the
call opens.
"""

from __future__ import annotations

import threading
import time
from typing import Callable, Generic, TypeVar

T = TypeVar("T")

# Longest single wait of a thread in seconds: Python runs signal handlers only between waits.
SLICE_SECONDS = 0.25


_running: set[threading.Thread] = set()  # threads that make a call


def wait_for_calls(seconds: float) -> None:
    """Waits until interrupted calls have ended, for at most `seconds` in all.

    Call it before the process exits, because the exit destroys global objects that a call in C may still use.
    """
    until = time.monotonic() + seconds
    for thread in list(_running):
        thread.join(max(0.0, until - time.monotonic()))


class InterruptibleCall(Generic[T]):
    """One call on another thread. `call` must refer to all memory that it uses, and must not raise.

    An interrupt may come at any moment, also after the call has opened a session that must be closed. The caller then
    calls abandon(), which passes the answer of the call to `orphaned` as soon as the call has ended.
    """

    def __init__(self, call: Callable[[], T], orphaned: Callable[[T], object] = lambda _: None) -> None:
        self._call, self._orphaned = call, orphaned
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._answers: list[T] = []
        self._abandoned = False

    def wait(self) -> T:
        """Makes the call and returns its answer. Threads other than the main thread make the call themselves."""
        if threading.current_thread() is not threading.main_thread():
            self._make_call()
            return self._answers[0]
        try:
            threading.Thread(target=self._run, name="gln-python", daemon=True).start()
        except RuntimeError:  # the interpreter is exiting and starts no more threads
            self._make_call()
        while not self._done.wait(SLICE_SECONDS):
            pass
        return self._answers[0]

    def abandon(self) -> None:
        """Passes the answer to `orphaned`, now or when the call ends. A second call does nothing."""
        with self._lock:
            orphans = [] if self._abandoned else list(self._answers)
            self._abandoned = True
        for answer in orphans:
            self._orphaned(answer)

    def _run(self) -> None:
        thread = threading.current_thread()
        _running.add(thread)
        try:
            self._make_call()
        finally:
            _running.discard(thread)

    def _make_call(self) -> None:
        answer = self._call()
        with self._lock:
            self._answers.append(answer)
            abandoned = self._abandoned
        self._done.set()
        if abandoned:
            self._orphaned(answer)
