"""The part of Gradients that join() calls: a rank that has joined takes part in averaging rounds with zeros."""

from __future__ import annotations

from gleaner.errors import FailedPreconditionError
from gleaner.torch.flights import Flights
from gleaner.torch.roll_call import Roll, RollCall
from gleaner.torch.slots import Slot


class JoiningGradients:
    """The base class of Gradients, which has the attributes and the other functions that this class uses."""

    unaveraged: bool
    _wait: str
    _slots: list[Slot]
    _steps: int
    _flights: Flights
    _roll: RollCall

    def check_can_join(self) -> None:
        """Raises FailedPreconditionError if this rank cannot join(), as with CrossBarrier or before step()."""
        self.check_pass()
        if self._wait == "forward":
            raise FailedPreconditionError("join() does not support CrossBarrier; use DistributedOptimizer")
        if self.unaveraged:
            raise FailedPreconditionError(
                "join() came after backward() and before step(): call step(), or zero_grad() to drop the gradients"
            )

    def begin_absence(self) -> None:
        """Answers the next roll call as a rank that has called join() and has no gradients."""
        self._roll.start([False] * len(self._slots), -(self._steps + 1), 0)

    def roll_is_called(self) -> bool:
        """Returns whether all ranks have answered the roll call, so that answer_absent() does not wait for them."""
        return self._roll.poll()

    def answer_absent(self) -> Roll:
        """Waits for a roll call and contributes zeros to that averaging round; returns the roll.

        If all ranks have joined, it ends this rank's absence instead.
        """
        roll = self._roll.finish()
        if roll.all_joined():
            self._reset_step()
            self._steps = int(abs(roll.steps).max()) - 1
            return roll
        self._flights.give_zeros(self._had(roll))
        roll.check()
        self.begin_absence()
        return roll
