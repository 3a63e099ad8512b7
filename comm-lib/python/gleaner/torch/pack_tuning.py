"""Decides how packs are made, by the first steps: the order of gradients, and with "auto" the threshold θ.

Rank 0 decides for all ranks at the end of a step, since ranks measure different times. Source: GradientFlow §3.1, whose
pool has gradients in the order of their generation, and whose θ is chosen by hand.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional, Union

from gleaner import exchange
from gleaner.session import Session
from gleaner.torch.flights import Flights
from gleaner.torch.fusion_model import Choice, Costs, Gradient, choose
from gleaner.torch.message_costs import measured_costs
from gleaner.torch.packs import AUTO, kind_of, size_of, told
from gleaner.torch.readiness import Readiness
from gleaner.torch.roll_call import Roll
from gleaner.torch.slots import Slot

_LOG = logging.getLogger("gleaner.torch")
_STEPS_OF_AUTO = 3  # steps before the decision: the first one allocates memory and takes longer


@dataclass(frozen=True)
class Tuned:
    """How all ranks make packs from the next step on.

    Attributes:
        order: Numbers of the optimizer's slots in the order in which backward() makes gradients; slots without a
            gradient come last.
        fusion_bytes: Threshold θ in bytes; None: no packs.
    """

    order: Sequence[int]
    fusion_bytes: Optional[float]


class PackTuning:
    """Decides once how one optimizer makes packs. Not thread safe.

    Args:
        fusion_bytes: Threshold θ in bytes, or "auto".
    """

    readiness: Readiness  # of the gradients of each step

    def __init__(self, fusion_bytes: Union[float, str]) -> None:
        self._fusion_bytes = fusion_bytes
        self.readiness = Readiness()

    def is_due(self, step: int, roll: Roll) -> bool:
        """Returns whether all ranks decide at the end of this step, counted from 1; `roll` is its last roll.

        A rank that has called join() takes part in roll calls alone, so the decision waits for it.
        """
        is_late_enough = step >= (_STEPS_OF_AUTO if self._fusion_bytes == AUTO else 1)
        return is_late_enough and bool((roll.steps > 0).all()) and bool(roll.has.any())

    def decide(self, session: Session, name: str, flights: Flights, slots: Sequence[Slot], roll: Roll) -> Tuned:
        """Returns the decision of rank 0. Collective; blocks.

        Args:
            session: The session of this rank.
            name: Prefix of the names of the optimizer's tensors.
            flights: Sends the gradients, of which none is in flight.
            slots: All slots of the optimizer.
            roll: The last roll of the step.

        Raises:
            GleanerError: The session has failed.
        """
        ready = self.readiness.seconds()
        order = [*ready, *(each for each in reversed(slots) if each not in ready)]
        fusion_bytes = self._fusion_bytes
        if fusion_bytes == AUTO:
            had = [slot for slot, ranks in zip(slots, roll.has.tolist()) if ranks > 0]
            costs = measured_costs(session, f"{name}.probe", flights, had[::-1], self.readiness.send_seconds)
            gradients = [
                Gradient(size_of(slot.parameter), seconds, kind_of(slot.parameter)) for slot, seconds in ready.items()
            ]
            choice = choose(gradients, costs)
            fusion_bytes = choice.fusion_bytes
            if session.rank_info.rank == 0:
                _LOG.info("%s: %s", name, _reasons(choice, costs))
                session.tell_packs(choice.fusion_bytes or 0, choice.seconds, choice.seconds_without_packs)
        number_of = {slot: number for number, slot in enumerate(slots)}
        return exchange.broadcast_object(session, Tuned([number_of[each] for each in order], fusion_bytes), 0)


def _reasons(choice: Choice, costs: Costs) -> str:
    """Returns the choice with its reasons, in one line."""
    chosen = "no packs" if choice.fusion_bytes is None else f"packs with fusion_bytes={told(choice.fusion_bytes)}"
    return (
        f"auto chooses {chosen}: the exchange is predicted to end {1000 * choice.seconds:.3g} ms after the first "
        f"gradient, without packs {1000 * choice.seconds_without_packs:.3g} ms; a message takes "
        f"{1e6 * costs.message_seconds:.3g} us, and {costs.bytes_per_second / 1e6:.3g} MB of gradients a second"
    )
