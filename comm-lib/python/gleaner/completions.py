"""Calls functions when requests are done, from one thread named gln-python, and longer functions from a pool.

The thread runs from the construction of Completions until close(). It calls the library only while requests that
on_done() started, or watch() has got, are outstanding.
"""

from __future__ import annotations

import contextlib
import functools
import math
import threading
import time
from concurrent import futures
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional

from gleaner.errors import DeadlineExceededError, GleanerError
from gleaner.session import Session

_SLICE_SECONDS = 0.25

Start = Callable[[], int]
Done = Callable[[Any], None]
Failed = Callable[[GleanerError], None]
Within = Callable[[], contextlib.AbstractContextManager[Any]]


class _Outstanding(NamedTuple):
    finish: Callable[[], None]
    failed: Failed
    until: float = math.inf


@functools.cache
def pool() -> futures.ThreadPoolExecutor:
    """Returns threads for functions that may wait for requests, for which the thread gln-python is not free."""
    return futures.ThreadPoolExecutor(max_workers=64, thread_name_prefix="gln-future")


class Completions:
    """Makes callbacks for requests of one session. Thread safe. Callbacks must be short and must not raise."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._changed = threading.Condition()
        self._outstanding: dict[int, _Outstanding] = {}
        self._closing = False
        self._wait_began: Optional[float] = None  # see count_wait()
        self._thread = threading.Thread(target=self._run, name="gln-python", daemon=True)
        self._thread.start()

    def on_done(self, start: Start, done: Done, failed: Failed, within: Within = contextlib.nullcontext) -> None:
        """Starts a request by calling `start`, which returns its handle.

        Later the thread calls `done` with the result of the request, or `failed` with its error. It waits for the
        result and calls `done` within a context of `within`, such as that of a stream of a GPU.
        """

        def finish() -> None:
            try:
                with within():
                    result = self._session.synchronize(handle)
                    self._end_wait()
                    done(result)
            except GleanerError as error:
                failed(error)
            except Exception as error:  # of the framework, such as torch.cuda's after a failure of the GPU
                failed(GleanerError(f"the result of a push_pull could not be taken over: {error}"))

        with self._changed:
            handle = start()
            self._outstanding[handle] = _Outstanding(finish, failed)
            self._changed.notify()

    def watch(self, handle: int, finish: Callable[[], None], failed: Failed, until: float = math.inf) -> None:
        """Calls `finish` when a request is done: in the thread, or now if it is done already.

        `finish` synchronizes the handle, and nobody else may. The thread calls `failed` instead if the session fails,
        or soon after the time `until` of time.monotonic().
        """
        with self._changed:
            self._outstanding[handle] = _Outstanding(finish, failed, until)
            self._changed.notify()
        # The thread may have seen the handle before it was here, and will not see it again. It ends with the session.
        with self._changed:
            is_left = handle in self._outstanding and (not self._thread.is_alive() or self._session.poll(handle))
        if is_left:
            self._finish(handle)

    def count_wait(self) -> None:
        """Tells that the program waits from now on for all outstanding requests. That time counts in the metrics."""
        with self._changed:
            self._wait_began = time.monotonic() if self._outstanding else None

    def close(self) -> None:
        """Ends the thread and calls `failed` for all outstanding requests. Call it before the session is closed."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        _name_thread("gln-python")
        while self._something_outstanding():
            try:
                handle = self._session.next_done(_SLICE_SECONDS)
            except GleanerError as error:
                self._fail_all(error)
                return
            if handle is not None:
                self._finish(handle)
            self._fail_late()
        self._fail_all(GleanerError("the session was closed before this push_pull was done"))

    def _something_outstanding(self) -> bool:
        """Waits until a request is outstanding, and returns True, or until close(), and returns False."""
        with self._changed:
            self._changed.wait_for(lambda: self._closing or self._outstanding)
            return not self._closing

    def _finish(self, handle: int) -> None:
        with self._changed:
            request = self._outstanding.pop(handle, None)
        if request is not None:  # else another caller has started this request, and synchronizes it
            request.finish()

    def _fail_late(self) -> None:
        now = time.monotonic()
        with self._changed:
            late = [handle for handle, request in self._outstanding.items() if request.until < now]
            requests = [self._outstanding.pop(handle) for handle in late]
        for request in requests:
            request.failed(DeadlineExceededError("the request is not done"))

    def _end_wait(self) -> None:
        """Counts the time since count_wait() if no request is outstanding."""
        with self._changed:
            began = None if self._outstanding else self._wait_began
            if began is not None:
                self._wait_began = None
        if began is not None:
            self._session.add_wait(time.monotonic() - began)

    def _fail_all(self, error: GleanerError) -> None:
        with self._changed:
            outstanding, self._outstanding = self._outstanding, {}
        for request in outstanding.values():
            request.failed(error)


def _name_thread(name: str) -> None:
    """Names the calling thread for the system (ps, gdb). Python does this itself from 3.14 on."""
    with contextlib.suppress(OSError):  # without /proc the thread has no name, which does no harm
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(name)
