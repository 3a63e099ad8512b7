"""A pool: the memory of the gradients that are sent in packs. Source: GradientFlow §3.1 (the memory pool)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch

from gleaner.torch.packs import strides_of


class Pool:
    """Memory for the gradients of parameters of one type on one device, one after another without gaps. Owns it.

    Example: parameters of 3, 4 and 2 elements, whose gradients have the places 0 to 2, 3 to 6 and 7 to 8 in `memory`.
    The pool begins with zeros.

    Args:
        parameters: In the order in which backward() makes their gradients.
        multiple: The memory has a multiple of this number of elements. Elements behind the last gradient stay zero.
    """

    memory: torch.Tensor  # one dimension
    rest: torch.Tensor  # the memory behind the last gradient
    places: list[torch.Tensor]  # by parameter: the view for its gradient, with the parameter's shape and memory format

    def __init__(self, parameters: Sequence[torch.Tensor], multiple: int = 1) -> None:
        first = parameters[0]
        sizes = [each.numel() for each in parameters]
        self._begins = [0, *itertools.accumulate(sizes)]
        elements = -(-self._begins[-1] // multiple) * multiple
        self.memory = torch.zeros(elements, dtype=first.dtype, device=first.device)
        self.rest = self.memory[self._begins[-1] :]
        self.places = [
            # `.data` gives each view a version counter of its own, so that a change of one is no change of all.
            self.memory.as_strided(each.shape, strides_of(each), begin).data
            for each, begin in zip(parameters, self._begins)
        ]

    def part(self, first: int, last: int) -> torch.Tensor:
        """Returns the memory of the gradients from number `first` to number `last`, which it includes."""
        return self.memory[self._begins[first] : self._begins[last + 1]]
