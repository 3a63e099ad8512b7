"""Tracks the memory of gradients in flight and rejects overlaps.

The average overwrites the memory that its gradient is sent from, so two gradients in flight must not share memory.
"""

from __future__ import annotations

import bisect
from typing import Optional

import torch

from gleaner import exchange
from gleaner.torch.tensors import TORCH


class Claims:
    """Holds disjoint memory ranges, at most one for each gradient. `gradient` identifies it. Not thread safe."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int, str]] = []  # begin, end, gradient; sorted by begin
        self._range_of: dict[str, tuple[int, int, str]] = {}  # the same ranges by gradient

    def claim(self, tensor: torch.Tensor, gradient: str) -> Optional[str]:
        """Claims the memory of `tensor`, which must be contiguous, for `gradient`.

        Returns None on success, or the name of another gradient that has claimed a part of this memory.
        """
        begin = TORCH.address(tensor)
        end = begin + exchange.bytes_of(TORCH, tensor)
        if begin == end:
            return None
        place = bisect.bisect_left(self._ranges, (end,))
        if place > 0:
            _, before_end, earlier = self._ranges[place - 1]
            if before_end > begin:
                return earlier
        self._range_of[gradient] = (begin, end, gradient)
        self._ranges.insert(place, self._range_of[gradient])
        return None

    def release(self, gradient: str) -> None:
        """Releases the range of `gradient`; does nothing if `gradient` has none."""
        claimed = self._range_of.pop(gradient, None)
        if claimed is not None:
            del self._ranges[bisect.bisect_left(self._ranges, claimed)]

    def clear(self) -> None:
        self._ranges.clear()
        self._range_of.clear()
