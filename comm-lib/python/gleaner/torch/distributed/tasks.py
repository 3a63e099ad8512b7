"""A thread that does the works of one process group that need several calls, one work after the other.

Every rank makes such works in the same order, so the calls of the thread's group match without further agreement.
"""

from __future__ import annotations

import queue
import threading
from typing import Optional

from gleaner.torch.distributed.works import TaskWork

_CLOSE_SECONDS = 2.0


class Tasks:
    """The thread starts with the first work, and ends at close(). submit() is thread safe."""

    def __init__(self) -> None:
        self._works: queue.SimpleQueue[Optional[TaskWork]] = queue.SimpleQueue()
        self._thread: Optional[threading.Thread] = None

    def submit(self, work: TaskWork) -> TaskWork:
        """Has the thread do a work after those that it has already."""
        if self._thread is None or not self._thread.is_alive():  # a forked child has no thread of its parent
            self._works = queue.SimpleQueue()
            self._thread = threading.Thread(target=_run, args=[self._works], name="gln-group", daemon=True)
            self._thread.start()
        self._works.put(work)
        return work

    def close(self) -> None:
        """Ends the thread after its works, for which this waits for a short time."""
        if self._thread is not None:
            self._works.put(None)
            self._thread.join(_CLOSE_SECONDS)
            self._thread = None


def _run(works: queue.SimpleQueue[Optional[TaskWork]]) -> None:
    while (work := works.get()) is not None:
        work.run()
        del work  # and so its tensors
