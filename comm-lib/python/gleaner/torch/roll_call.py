"""The roll call tells every rank which gradients other ranks have, and whether all ranks are at the same step.

A roll call is one small int32 tensor that an averaging round (gradients.py) sums in addition to the gradients. Example:
two ranks, and an optimizer of three parameters. Both ranks are in step 5; rank 1 lacks the gradient of parameter 2.

                         parameter 0, 1, 2    step of rank 0, 1    round of rank 0, 1
    answer of rank 0          1  1  1               5  0                 1  0
    answer of rank 1          1  1  0               0  5                 0  1
    their sum, a Roll         2  2  1               5  5                 1  1

The sum says that one rank has a gradient of parameter 2, and that both ranks are in the first averaging round of step
5. A rank that has called join() answers with minus its step. In its first answer in a session a rank puts minus the
fingerprint of its parameters in place of its round, which is 1 then. Behind the rounds each rank also puts the
fingerprint of what it sends (its packs, or the chunks of the step), and the bits of two settings as float32: its
`fusion_bytes` and the share of its `sparsity`. The coordinator knows the size of a roll call
(coordinator/planning/advice.cc).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Callable, Optional

import numpy

from gleaner import arrays, exchange
from gleaner.errors import FailedPreconditionError
from gleaner.exchange import PushPullOptions
from gleaner.session import DataType, Session
from gleaner.torch.packs import Fusion, told

# A rank learns from the roll call which averages to wait for, so the roll call is sent before all gradients.
_PRIORITY = -1


@dataclass(frozen=True)
class Roll:
    """The sum of all ranks' answers. Steps count from 1; a rank that has called join() answers with minus its step."""

    has: numpy.ndarray  # int32, by parameter: number of ranks that send its gradient
    steps: numpy.ndarray  # int32, by rank
    rounds: numpy.ndarray  # int32, by rank: number of the averaging round within the step
    fingerprints: numpy.ndarray  # int32, by rank: fingerprint of the rank's parameters; 0 after its first answer
    sent: numpy.ndarray  # int32, by rank: fingerprint of the packs or chunks that the rank sends
    fusion_bytes: numpy.ndarray  # float32, by rank: as in Fusion
    shares: numpy.ndarray  # float32, by rank: `share` as in Fusion

    def all_joined(self) -> bool:
        return bool((self.steps < 0).all())

    def all_alike(self) -> bool:
        """Returns whether all ranks have made the same number of steps."""
        return bool((numpy.abs(self.steps) == abs(self.steps[0])).all())

    def last(self) -> int:
        """Returns the rank that made the most steps; the highest such rank if there are several."""
        steps = numpy.abs(self.steps)
        return int(numpy.flatnonzero(steps == steps.max())[-1])

    def check(self) -> None:
        """Raises FailedPreconditionError, on every rank, if ranks are at different steps or averaging rounds.

        Ranks that have called join() are not compared. Warns if ranks begin with different parameters.
        """
        self._check_fingerprints()
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

    def check_sent(self) -> None:
        """Raises FailedPreconditionError, on every rank, if ranks send different packs or chunks."""
        if (self.sent == self.sent[0]).all():
            return
        other = int(numpy.flatnonzero(self.sent != self.sent[0])[0])
        share, others_share = ("None" if self.shares[rank] < 0 else f"{self.shares[rank]:.7g}" for rank in (0, other))
        if share != others_share:
            raise FailedPreconditionError(
                f"ranks send different parts of their gradients: the share of sparsity is {share} on rank 0 and "
                f"{others_share} on rank {other}; pass the same sparsity on all ranks"
            )
        mine, theirs = (told(float(self.fusion_bytes[rank])) for rank in (0, other))
        if mine != theirs:
            raise FailedPreconditionError(
                f"ranks fuse gradients differently: fusion_bytes is {mine} on rank 0 and {theirs} on rank {other}; "
                "pass the same fusion_bytes on all ranks"
            )
        if share != "None":
            raise FailedPreconditionError(
                f"rank 0 and rank {other} send different chunks with the same share of sparsity: pass the same "
                "Sparsity on all ranks, freeze the same parameters, and after a checkpoint load the same state on all "
                "ranks (gleaner.torch.broadcast_optimizer_state)"
            )
        raise FailedPreconditionError(
            f"rank 0 and rank {other} have different packs of gradients with the same fusion_bytes of {mine}: before "
            "you wrap the optimizer, freeze the same parameters on all ranks, and give them the same types and the "
            "same memory format"
        )

    def _check_fingerprints(self) -> None:
        known = numpy.flatnonzero(self.fingerprints)
        others = [str(rank) for rank in known if self.fingerprints[rank] != self.fingerprints[known[0]]]
        if others:
            warnings.warn(
                "ranks begin with different parameters, and will keep different ones: "
                f"{'rank' if len(others) == 1 else 'ranks'} {', '.join(others)} "
                f"{'has' if len(others) == 1 else 'have'} others than rank {known[0]}; "
                "call gleaner.torch.broadcast_parameters(model.state_dict()) "
                "before the first step",
                stacklevel=2,
            )


class RollCall:
    """Makes the roll calls of one optimizer. Not thread safe.

    start() sends this rank's answer, and finish() waits for the answers of all ranks; pending tells whether a roll call
    is between the two. `parameters` is the number of the optimizer's parameters.
    """

    def __init__(
        self, session: Session, name: str, parameters: int, fusion: Fusion, fingerprint: Callable[[], int]
    ) -> None:
        self._session, self._name, self._parameters = session, name, parameters
        self.follow(fusion, fingerprint)
        self._handle: Optional[int] = None
        session.declare(name, self._elements(), DataType.INT32, _PRIORITY)

    def follow(self, fusion: Fusion, fingerprint: Callable[[], int]) -> None:
        """Tells the settings of `fusion` from now on, and the result of `fingerprint`, that of what a step sends."""
        self._fusion, self._fingerprint = fusion, fingerprint

    @property
    def pending(self) -> bool:
        return self._handle is not None

    def start(self, has: Sequence[bool], step: int, round: int, fingerprint: int = 0) -> None:
        """Sends this rank's answer; `fingerprint` is that of its parameters, in its first answer, and 0 later."""
        ranks, rank = self._session.rank_info.size, self._session.rank_info.rank
        answer = numpy.zeros(self._elements(), numpy.int32)
        answer[: self._parameters] = has
        answer[self._parameters + rank] = step
        answer[self._parameters + ranks + rank] = -fingerprint or round
        answer[self._parameters + 2 * ranks + rank] = self._fingerprint()
        for place, setting in enumerate((self._fusion.fusion_bytes, self._fusion.share), start=3):
            answer[self._parameters + place * ranks + rank] = numpy.float32(setting).view(numpy.int32)
        options = PushPullOptions(average=False, name=self._name, priority=_PRIORITY, in_place=True)
        self._handle = exchange.push_pull_async(self._session, arrays.NUMPY, answer, options)

    def poll(self) -> bool:
        return self._session.poll(self._handle)

    def finish(self) -> Roll:
        """Waits for the answers, which Roll.check_sent() has accepted.

        Raises:
            FailedPreconditionError: Ranks send different packs or chunks.
            GleanerError: The session has failed.
        """
        handle, self._handle = self._handle, None
        has, rest = numpy.split(self._session.synchronize(handle), [self._parameters])
        steps, rounds, sent, *settings = numpy.split(rest, 5)
        rounds, fingerprints = numpy.where(rounds < 0, 1, rounds), numpy.maximum(-rounds, 0)
        roll = Roll(has, steps, rounds, fingerprints, sent, *(each.view(numpy.float32) for each in settings))
        roll.check_sent()
        return roll

    def _elements(self) -> int:
        return self._parameters + 5 * self._session.rank_info.size


def _ordinal(number: int) -> str:
    return f"{number}{'th' if 10 <= number % 100 <= 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
