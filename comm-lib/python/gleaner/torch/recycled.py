"""Tensors whose memory comes back: what is made and dropped in each step finds its pages there already."""

from __future__ import annotations

import collections
import weakref
from collections.abc import Iterable

import numpy
import torch

from gleaner import exchange
from gleaner.torch.tensors import TorchTensors


class RecycledTensors(TorchTensors):
    """Makes tensors in the memory of earlier ones that nobody has any more. Thread safe.

    Keeps memory for as many tensors of each size as there are among `likenesses`.
    """

    def __init__(self, likenesses: Iterable[torch.Tensor]) -> None:
        self._most = collections.Counter(exchange.bytes_of(self, each) for each in likenesses)
        self._blocks: dict[int, list[numpy.ndarray]] = {size: [] for size in self._most}

    def empty_like(self, tensor: torch.Tensor) -> torch.Tensor:
        size = exchange.bytes_of(self, tensor)
        if size == 0 or size not in self._most:
            return super().empty_like(tensor)
        try:
            block = self._blocks[size].pop()
        except IndexError:
            block = numpy.empty(size, dtype=numpy.uint8)
        memory = block[:]  # lives as long as any tensor in it
        weakref.finalize(memory, self._bring_back, block).atexit = False
        return torch.frombuffer(memory, dtype=tensor.dtype).view(tensor.shape)

    def _bring_back(self, block: numpy.ndarray) -> None:
        if len(self._blocks[block.size]) < self._most[block.size]:
            self._blocks[block.size].append(block)
