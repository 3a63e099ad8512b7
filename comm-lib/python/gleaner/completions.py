"""Calls back when push_pulls are done, from one thread named gln-python.

The thread exists from the first on_done() to close(), and asks the library only while something is outstanding.
"""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import Any, Callable

from gleaner.errors import GleanerError
from gleaner.session import Session

_SLICE_SECONDS = 0.25

Start = Callable[[], int]
Done = Callable[[Any], None]
Failed = Callable[[GleanerError], None]


class Completions:
    """Callbacks for the push_pulls of one session. Thread safe; callbacks must be short and must not raise."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._changed = threading.Condition()
        self._outstanding: dict[int, tuple[Done, Failed]] = {}
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="gln-python", daemon=True)
        self._thread.start()

    def on_done(self, start: Start, done: Done, failed: Failed) -> None:
        """Starts a push_pull by `start`, which returns its handle, and calls `done` with its result or `failed`."""
        with self._changed:
            self._outstanding[start()] = (done, failed)
            self._changed.notify()

    def close(self) -> None:
        """Ends the thread; callbacks still outstanding fail. Call it before the session is closed."""
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
        self._fail_all(GleanerError("the session was closed before this push_pull was done"))

    def _something_outstanding(self) -> bool:
        """Waits until there is something to wait for; False when closing."""
        with self._changed:
            self._changed.wait_for(lambda: self._closing or self._outstanding)
            return not self._closing

    def _finish(self, handle: int) -> None:
        with self._changed:
            callbacks = self._outstanding.pop(handle, None)
        if callbacks is None:  # somebody else's, who synchronizes it
            return
        done, failed = callbacks
        try:
            result = self._session.synchronize(handle)
        except GleanerError as error:
            failed(error)
        else:
            done(result)

    def _fail_all(self, error: GleanerError) -> None:
        with self._changed:
            outstanding, self._outstanding = self._outstanding, {}
        for _, failed in outstanding.values():
            failed(error)


def _name_thread(name: str) -> None:
    """Names the calling thread for the system (ps, gdb), which Python does only from 3.14 on."""
    with contextlib.suppress(OSError):  # no /proc: the name is a convenience
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(name)
