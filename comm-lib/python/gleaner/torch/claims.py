"""Which memory is in flight, so that none is twice: what is sent from it, its average overwrites."""

from __future__ import annotations

import bisect
from typing import Optional

import torch

from gleaner.torch.tensors import TORCH


class Claims:
    """Disjoint ranges of memory, each with whose it is. Not thread safe."""

    def __init__(self) -> None:
        self._begins: list[int] = []  # in order
        self._ranges: dict[int, tuple[int, str]] = {}  # by its begin, the end of each and whose it is

    def make(self, tensor: torch.Tensor, owner: str) -> Optional[str]:
        """Claims the memory of `tensor`, which has no gaps; or says whose a part of it is already."""
        begin = TORCH.address(tensor)
        end = begin + TORCH.elements(tensor) * tensor.element_size()
        if begin == end:
            return None
        place = bisect.bisect_left(self._begins, end)
        if place > 0:
            before_end, whose = self._ranges[self._begins[place - 1]]
            if before_end > begin:
                return whose
        self._begins.insert(place, begin)
        self._ranges[begin] = (end, owner)
        return None

    def give_up(self, begin: int) -> None:
        """Does nothing where none begins."""
        if self._ranges.pop(begin, None) is not None:
            del self._begins[bisect.bisect_left(self._begins, begin)]

    def clear(self) -> None:
        self._begins.clear()
        self._ranges.clear()
