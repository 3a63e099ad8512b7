"""Which memory is in flight, so that none is twice: what is sent from it, its average overwrites."""

from __future__ import annotations

import bisect
from typing import Optional

import torch

from gleaner import exchange
from gleaner.torch.tensors import TORCH


class Claims:
    """Disjoint ranges of memory, each with whose it is; an owner has one at most. Not thread safe."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int, str]] = []  # begin, end, owner; in order
        self._of: dict[str, tuple[int, int, str]] = {}  # the same, by owner

    def make(self, tensor: torch.Tensor, owner: str) -> Optional[str]:
        """Claims the memory of `tensor`, which has no gaps; or says whose a part of it is already."""
        begin = TORCH.address(tensor)
        end = begin + exchange.bytes_of(TORCH, tensor)
        if begin == end:
            return None
        place = bisect.bisect_left(self._ranges, (end,))
        if place > 0:
            _, before_end, whose = self._ranges[place - 1]
            if before_end > begin:
                return whose
        self._of[owner] = (begin, end, owner)
        self._ranges.insert(place, self._of[owner])
        return None

    def give_up(self, owner: str) -> None:
        """Does nothing where it has none."""
        claimed = self._of.pop(owner, None)
        if claimed is not None:
            del self._ranges[bisect.bisect_left(self._ranges, claimed)]

    def clear(self) -> None:
        self._ranges.clear()
        self._of.clear()
