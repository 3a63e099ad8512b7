"""Allocates tensors in the memory of earlier tensors, so that the tensors of a step cause no new page faults."""

from __future__ import annotations

import collections
import weakref
from collections.abc import Iterable

import numpy
import torch

from gleaner import exchange
from gleaner.torch.tensors import TorchTensors


class _Loan(weakref.ref):
    """Refers to the view of a block that tensors use, and keeps the block until they are freed."""

    __slots__ = ("block",)
    block: numpy.ndarray


class RecycledTensors(TorchTensors):
    """Allocates tensors in the memory of earlier tensors that were freed. Thread safe.

    For each size in bytes it keeps memory for at most as many tensors as `templates` contains of that size. On a GPU,
    PyTorch's own allocator does all this.
    """

    def __init__(self, templates: Iterable[torch.Tensor]) -> None:
        self._most = collections.Counter(exchange.bytes_of(self, each) for each in templates)
        self._blocks: dict[int, list[numpy.ndarray]] = {size: [] for size in self._most}
        self._loans: dict[int, _Loan] = {}  # blocks in use, by id()
        self._ended: collections.deque[_Loan] = collections.deque()

    def empty_like(self, tensor: torch.Tensor) -> torch.Tensor:
        size = exchange.bytes_of(self, tensor)
        if tensor.device.type != "cpu" or size == 0 or size not in self._most:
            return super().empty_like(tensor)
        self._take_back()
        try:
            block = self._blocks[size].pop()
        except IndexError:
            block = numpy.empty(size, dtype=numpy.uint8)
        memory = block[:]  # this view lives as long as any tensor that uses the block
        # The callback is a function in C: an interrupt (Ctrl-C) that came in a callback in Python would be lost.
        loan = _Loan(memory, self._ended.append)
        loan.block = block
        self._loans[id(loan)] = loan
        return torch.frombuffer(memory, dtype=tensor.dtype).view(tensor.shape)

    def _take_back(self) -> None:
        while self._ended:
            try:
                loan = self._ended.popleft()
            except IndexError:
                return  # another thread has taken it
            del self._loans[id(loan)]
            if len(self._blocks[loan.block.size]) < self._most[loan.block.size]:
                self._blocks[loan.block.size].append(loan.block)
