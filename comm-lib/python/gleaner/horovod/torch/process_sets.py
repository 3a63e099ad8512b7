"""Process sets: the sets of ranks that run operations together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Optional

from gleaner.errors import InvalidArgumentError

if TYPE_CHECKING:
    from gleaner.horovod.torch.layer import Layer


class ProcessSet:
    """Some ranks of the job. init() or add_process_set() makes it usable, on all ranks.

    Attributes:
        ranks: The ranks, in ascending order; None before init() for the set of all ranks.
        process_set_id: Number of the set; None: the set is not usable.

    Raises:
        InvalidArgumentError: The ranks are no list of different int.
    """

    def __init__(self, ranks: Iterable[int]) -> None:
        try:
            self.ranks: Optional[list[int]] = sorted(ranks)
        except TypeError:
            raise InvalidArgumentError(
                f"a process set is a list of ranks, not {ranks!r}; communicators of MPI are " "not supported"
            ) from None
        if any(isinstance(rank, bool) or not isinstance(rank, int) for rank in self.ranks):
            raise InvalidArgumentError(f"a process set is a list of ranks, not {ranks!r}")
        if len(set(self.ranks)) < len(self.ranks):
            raise InvalidArgumentError(f"process set {self.ranks} has a rank twice")
        self.process_set_id: Optional[int] = None
        self._layer: Optional[Layer] = None

    def size(self) -> Optional[int]:
        """Returns the number of ranks of the set; None: it is not usable."""
        return None if self.process_set_id is None else len(self.ranks)

    def rank(self) -> Optional[int]:
        """Returns this rank's place in the set; None: the set is not usable, or this rank is not in it."""
        return self.ranks.index(self._layer.rank) if self.included() else None

    def included(self) -> Optional[bool]:
        """Returns whether this rank is in the set; None: the set is not usable."""
        return None if self.process_set_id is None else self._layer.rank in self.ranks

    def enter(self, layer: Layer, number: int) -> None:
        """Makes the set usable, with this number."""
        self._layer, self.process_set_id = layer, number

    def leave(self) -> None:
        self._layer, self.process_set_id = None, None

    def __str__(self) -> str:
        return f"ProcessSet(process_set_id={self.process_set_id}, ranks={self.ranks})"


global_process_set = ProcessSet([])
