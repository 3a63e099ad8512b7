"""The roll call of an averaging round: which ranks have which gradients, and whether all ranks are at the same step.

Each round sums one small int32 tensor beside the gradients. It has an element per parameter, to which a rank that sends
the gradient adds 1, and two elements per rank: its step and its round within the step, which no other rank adds to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional

import numpy

from gleaner import arrays, exchange
from gleaner.errors import FailedPreconditionError
from gleaner.session import DataType, Session

# Every rank waits for the roll call before it knows what to wait for, so the roll call overtakes all gradients.
_PRIORITY = -1


@dataclass(frozen=True)
class Roll:
    """The sum of all ranks' answers. Steps count from 1; a rank that has joined answers with its step, negated."""

    has: numpy.ndarray  # how many ranks send each parameter's gradient
    steps: numpy.ndarray  # by rank
    rounds: numpy.ndarray  # by rank

    def all_joined(self) -> bool:
        return bool((self.steps < 0).all())

    def all_alike(self) -> bool:
        """Whether all ranks have made equally many steps."""
        return bool((numpy.abs(self.steps) == abs(self.steps[0])).all())

    def last(self) -> int:
        """The rank that made the most steps; of several, the last."""
        steps = numpy.abs(self.steps)
        return int(numpy.flatnonzero(steps == steps.max())[-1])

    def check(self) -> None:
        """Raises, on every rank, unless all ranks that have not joined are in the same round of the same step."""
        active = numpy.flatnonzero(self.steps > 0)
        places = {(int(self.steps[rank]), int(self.rounds[rank])): int(rank) for rank in active[::-1]}
        if len(places) < 2:
            return
        told = "; ".join(
            f"rank {rank} averages gradients for the {_ordinal(round)} time in its step {step}"
            for (step, round), rank in sorted(places.items(), key=lambda item: item[1])
        )
        raise FailedPreconditionError(
            f"ranks are at different steps: {told}; every rank must call backward() and step() equally often, or "
            "gleaner.torch.join() when its data ends"
        )


class RollCall:
    """Of one optimizer's parameters. Not thread safe."""

    def __init__(self, session: Session, name: str, parameters: int) -> None:
        self._session, self._name, self._parameters = session, name, parameters
        self._handle: Optional[int] = None
        session.declare(name, self._elements(), DataType.INT32, _PRIORITY)

    @property
    def pending(self) -> bool:
        return self._handle is not None

    def start(self, has: Sequence[bool], step: int, round: int) -> None:
        ranks, rank = self._session.topology.size, self._session.topology.rank
        answer = numpy.zeros(self._elements(), numpy.int32)
        answer[: self._parameters] = has
        answer[self._parameters + rank] = step
        answer[self._parameters + ranks + rank] = round
        self._handle = exchange.push_pull_async(
            self._session, arrays.NUMPY, answer, average=False, name=self._name, priority=_PRIORITY, in_place=True
        )

    def poll(self) -> bool:
        return self._session.poll(self._handle)

    def finish(self) -> Roll:
        handle, self._handle = self._handle, None
        has, rest = numpy.split(self._session.synchronize(handle), [self._parameters])
        return Roll(has, *numpy.split(rest, 2))

    def _elements(self) -> int:
        return self._parameters + 2 * self._session.topology.size


def _ordinal(number: int) -> str:
    return f"{number}{'th' if 10 <= number % 100 <= 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
