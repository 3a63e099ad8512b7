"""Finds which operations all ranks of a process set have submitted, and whether ranks agree on them. Pure.

Ranks submit operations in any order. They tell each other in rounds (rounds.py) what they have submitted, so all ranks
pass the same news to their Negotiation, and make the same decisions in the same order. Example with two ranks:

    round    news of rank 0    news of rank 1    decisions
    1        a, b              b                 b is ready
    2                          a                 a is ready
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional

JOIN = "join"  # kind and name of the operation of join()
_JOINABLE = ("Sum", "Average")


@dataclass(frozen=True)
class Description:
    """An operation as one rank has submitted it.

    Attributes:
        kind: allreduce, allgather, broadcast, reducescatter, alltoall, barrier, join or add_process_set.
        name: Name of the operation, which no other operation in flight has.
        dtypes: The type of each tensor.
        shapes: The shape of each tensor.
        devices: The kind of device of each tensor, such as cpu.
        op: Name of the reduction.
        scales: Factors before and after a reduction.
        root: Rank in the process set of the root of a broadcast.
        numbers: Rows for each rank of an alltoall, or the ranks of a new process set.
        priority: Priority of a gradient; None: the tensors are no gradients.
    """

    kind: str
    name: str
    dtypes: tuple[str, ...] = ()
    shapes: tuple[tuple[int, ...], ...] = ()
    devices: tuple[str, ...] = ()
    op: str = ""
    scales: tuple[float, float] = (1.0, 1.0)
    root: int = 0
    numbers: tuple[int, ...] = ()
    priority: Optional[int] = None

    def agreed(self) -> dict[str, Any]:
        """Returns what all ranks must have in common, by the name that errors give it."""
        has_own_rows = self.kind in ("allgather", "alltoall")
        agreed: dict[str, Any] = {
            "data types": self.dtypes,
            "shapes beyond the first dimension" if has_own_rows else "shapes": tuple(
                shape[1:] if has_own_rows else shape for shape in self.shapes
            ),
            "devices": self.devices,
            "reduction": self.op,
            "scale factors": self.scales,
            "root rank": self.root,
        }
        if self.kind == "add_process_set":
            agreed["ranks"] = self.numbers
        return agreed


@dataclass(frozen=True)
class Decision:
    """An operation that all ranks can start now, or that has failed.

    Attributes:
        name: Name of the operation.
        by_rank: Its description by each rank; None: the rank has joined and contributes zeros.
        error: Why the operation has failed; empty: it has not.
        last: Of join(): the rank that has joined last.
    """

    name: str
    by_rank: tuple[Optional[Description], ...]
    error: str = ""
    last: int = -1

    @property
    def example(self) -> Description:
        """The description by some rank; those of other ranks differ at most in rows."""
        return next(each for each in self.by_rank if each is not None)


class Negotiation:
    """The operations that some ranks have submitted, and others have not."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._submitted: dict[str, list[Optional[Description]]] = {}
        self._has_joined = [False] * size
        self._last = -1  # the rank that has joined last

    def add(self, news: Sequence[Sequence[Description]]) -> list[Decision]:
        """Takes what each rank has submitted since the last call, and returns the decisions in their order."""
        for rank, descriptions in enumerate(news):
            for each in descriptions:
                if each.kind == JOIN:
                    self._has_joined[rank] = True
                    self._last = rank
                else:
                    self._submitted.setdefault(each.name, [None] * self._size)[rank] = each
        ready = [name for name, by_rank in self._submitted.items() if self._is_ready(by_rank)]
        decisions = [self._decide(name, self._submitted.pop(name)) for name in ready]
        if all(self._has_joined):
            joined = Description(JOIN, JOIN)
            decisions.append(Decision(JOIN, (joined,) * self._size, last=self._last))
            self._has_joined = [False] * self._size
        return decisions

    def _is_ready(self, by_rank: Sequence[Optional[Description]]) -> bool:
        return all(each is not None or joined for each, joined in zip(by_rank, self._has_joined))

    def _decide(self, name: str, by_rank: Sequence[Optional[Description]]) -> Decision:
        return Decision(name, tuple(by_rank), _join_error(by_rank) or _difference(by_rank))


def _join_error(by_rank: Sequence[Optional[Description]]) -> str:
    """Returns why ranks that have joined cannot take part in an operation; empty: they can, or none has joined."""
    absent = [str(rank) for rank, each in enumerate(by_rank) if each is None]
    one = next(each for each in by_rank if each is not None)
    if not absent or (one.kind == "allreduce" and one.op in _JOINABLE):
        return ""
    what = f"{one.kind} with {one.op}" if one.op else one.kind
    return (
        f"{one.name}: {'ranks' if len(absent) > 1 else 'rank'} {', '.join(absent)} joined, and {what} is not possible "
        "then: a rank that has joined contributes zeros, to sums and averages of allreduce only"
    )


def _difference(by_rank: Sequence[Optional[Description]]) -> str:
    """Returns in what the descriptions differ that must be equal; empty: in nothing."""
    present = [(rank, each) for rank, each in enumerate(by_rank) if each is not None]
    first, one = present[0]
    for rank, other in present[1:]:
        theirs = other.agreed()
        for what, value in one.agreed().items():
            if theirs.get(what) != value:
                return (
                    f"{one.name}: ranks have different {what}: rank {first} of the process set has "
                    f"{_short(value)}, rank {rank} has {_short(theirs.get(what))}"
                )
    return ""


def _short(value: Any) -> Any:
    return value[0] if isinstance(value, tuple) and len(value) == 1 else value


__all__ = ["JOIN", "Decision", "Description", "Negotiation"]
