"""Calls of a group between start_coalescing() and end_coalescing(), which PyTorch waits for as one.

Each call begins at once, and ends on its own. PyTorch's _coalescing_manager() makes one call of several all_reduces,
all_gathers or reduce_scatters, so that small tensors are one message (coalesced.py); other calls stay messages. Only
this manager, and batch_isend_irecv() of PyTorch 1.13, make such calls.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Optional

from gleaner.torch.distributed.works import GleanerWork, JoinedWork


class Coalescing:
    """The part of a process group that collects works. One thread at a time uses it."""

    _coalesced: Optional[list[GleanerWork]] = None  # works since start_coalescing()

    def start_coalescing(self, device: Any = None) -> None:
        """Begins to collect works. Works that an earlier block has left after an error are dropped."""
        self._coalesced = []

    def end_coalescing(self, device: Any = None) -> JoinedWork:
        """Returns a work that ends once all works since start_coalescing() have ended."""
        works, self._coalesced = self._coalesced or [], None
        return JoinedWork(works)

    # Python calls these names, and C++ those above.
    _start_coalescing = start_coalescing
    _end_coalescing = end_coalescing


def collected(method: Callable[..., GleanerWork]) -> Callable[..., GleanerWork]:
    """Decorates a method of a Coalescing that returns a work, which then is among those that are collected."""

    @functools.wraps(method)
    def called(self: Coalescing, *arguments: Any, **named: Any) -> GleanerWork:
        work = method(self, *arguments, **named)
        if self._coalesced is not None:
            self._coalesced.append(work)
        return work

    return called
