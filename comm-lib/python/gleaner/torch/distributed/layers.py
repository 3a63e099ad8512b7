"""The collectives of one group: those of the program, and apart from them those that callbacks of futures call.

The program and a callback call collectives at the same time, in an order between them that differs from rank to rank.
Each depth of callbacks (futures.py) therefore has groups of its own in the session.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Optional

from gleaner.codec import SentAs
from gleaner.session import Session
from gleaner.torch.distributed.collectives import Collectives
from gleaner.torch.distributed.futures import depth

_NUMBERS = 2  # of each Collectives; job.NUMBERS_OF_GROUP are those of all depths


class Layers:
    """The collectives of one group, by the depth of the thread that calls them. The arguments are as of Collectives."""

    def __init__(self, session: Session, number: int, members: Sequence[int], timeout: float) -> None:
        self.session = session
        self._arguments = session, number, members
        self._timeout = timeout
        self._sent_as: Optional[SentAs] = None
        self._lock = threading.Lock()
        self._by_depth: dict[int, Collectives] = {}
        self.here()

    def here(self) -> Collectives:
        """Returns the collectives for the calling thread."""
        with self._lock:
            if depth() not in self._by_depth:
                session, number, members = self._arguments
                here = Collectives(session, number + _NUMBERS * depth(), members, self._timeout)
                here.set_sent_as(self._sent_as)
                self._by_depth[depth()] = here
            return self._by_depth[depth()]

    def set_timeout(self, seconds: float) -> None:
        with self._lock:
            self._timeout = seconds
            for each in self._by_depth.values():
                each.timeout = seconds

    def set_sent_as(self, sent_as: Optional[SentAs]) -> None:
        with self._lock:
            self._sent_as = sent_as
            for each in self._by_depth.values():
                each.set_sent_as(sent_as)

    def close(self) -> None:
        with self._lock:
            for each in self._by_depth.values():
                each.close()
