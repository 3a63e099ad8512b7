"""Requests: the operations of this rank that are in flight."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Callable, Optional

import torch

from gleaner.horovod.torch.negotiation import Description
from gleaner.torch.distributed.works import GleanerWork

FOREVER = 10.0 * 365 * 24 * 3600  # seconds


class Request:
    """An operation that this rank has submitted. The negotiation ends with start() or fail(), and then wait() returns.

    Args:
        description: The operation.
        tensors: Its inputs.
        in_place: Whether results overwrite the inputs.
        unpack: Makes what wait() returns of the result of the operation.

    Attributes:
        key: Number of its process set, and its name.
        stream: The CUDA stream on which the inputs are ready; None: they are on the CPU.
    """

    def __init__(
        self,
        description: Description,
        tensors: Sequence[torch.Tensor] = (),
        in_place: bool = False,
        unpack: Optional[Callable[[Any], Any]] = None,
    ) -> None:
        self.description = description
        self.key: tuple[Optional[int], str] = (None, description.name)
        self.tensors = list(tensors)
        self.in_place = in_place
        on_gpu = next((each for each in tensors if each.is_cuda), None)
        self.stream = None if on_gpu is None else torch.cuda.current_stream(on_gpu.device)
        self._unpack = unpack
        self._is_decided = threading.Event()
        self._works: list[GleanerWork] = []
        self._finish: Callable[[], Any] = _nothing
        self._error: Optional[Exception] = None

    def start(self, works: Sequence[GleanerWork], finish: Callable[[], Any]) -> None:
        """Gives the request its works, and the function that returns its result once they have ended."""
        self._works, self._finish = list(works), finish
        self._is_decided.set()

    def fail(self, error: Exception) -> None:
        self._error = error
        self._is_decided.set()

    def is_done(self) -> bool:
        """Returns whether wait() does not block."""
        return self._is_decided.is_set() and all([work.is_completed() for work in self._works])

    def wait(self) -> Any:
        """Waits for the end and returns the result. Call it once.

        Raises:
            GleanerError: Ranks differ in the operation, or the session has failed.
        """
        self._is_decided.wait(FOREVER)
        if self._error is not None:
            raise self._error
        for work in self._works:
            work.wait()
        result = self._finish()
        return result if self._unpack is None else self._unpack(result)


def _nothing() -> None:
    pass
