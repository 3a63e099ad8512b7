"""The part of Gradients that CrossBarrier calls: a step ends while its gradients are in flight."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch

from gleaner.torch.flights import Flights
from gleaner.torch.pass_count import PassCount
from gleaner.torch.roll_call import RollCall
from gleaner.torch.slots import Slot
from gleaner.torch.sparse_flights import SparseFlights


class PostponingGradients:
    """The base class of Gradients, which has the attributes and the other functions that this class uses."""

    sparse: SparseFlights | None
    _slots: list[Slot]
    _trainable: dict[Slot, None]
    _flights: Flights
    _roll: RollCall
    _passes: PassCount
    _unsent: dict[Slot, None]
    _without_gradient: list[Slot]

    def __init__(self) -> None:
        self._overdue: dict[torch.nn.Parameter, Slot] = {}  # slots that postpone() left in flight
        self._sent_zeros: set[Slot] = set()  # overdue slots without a gradient, for which this rank sent zeros

    @property
    def overdue(self) -> Mapping[torch.nn.Parameter, Slot]:
        """The parameters whose gradients postpone() left in flight, until finish()."""
        return self._overdue

    def postpone(self) -> None:
        """Ends the step with all gradients in flight. Call finish() before the next forward pass uses a parameter.

        Parameters without a gradient on this rank send zeros before the roll call tells whether another rank has one:
        this rank might not call finish() again, and other ranks would wait for the zeros. With `sparsity` they would
        change the history of these parameters, so this rank waits for the roll call if it lacks a gradient.
        """
        self.check_pass()
        if self.sparse is None:
            self._postpone_all()
        else:
            self._postpone_sparse(self.sparse)
        self._passes.restart()
        self._averaged = True
        self._overdue = {each.parameter: each for each in self._flights.all()}
        self.end_step()

    def _postpone_all(self) -> None:
        had = [each.parameter.grad is not None for each in self._slots]
        self._sent_zeros = {each for each in self._trainable if each.parameter.grad is None}
        for slot in self._unsent:
            if not slot.is_as_noted():
                raise self._changed(slot)
        self._send_without(each for each in self._trainable if each not in self._flights)
        self._call_roll(had)

    def _postpone_sparse(self, flights: SparseFlights) -> None:
        self._begin_round(self._to_average())
        if len(flights) < len(self._trainable):
            self._send_without(each for each in self._had(self._checked_roll()) if each not in flights)
        flights.postpone()
        self._without_gradient = [each for each in self._slots if each.parameter.grad is None]

    def finish(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Waits until the gradients of `parameters`, which postpone() left in flight, are averages."""
        if self._roll.pending:
            self._sent_zeros.difference_update(self._had(self._checked_roll()))
        slots = [self._overdue.pop(parameter) for parameter in parameters]
        changed = self._flights.finish(slots)
        if changed:
            raise self._changed(changed[0])
        for slot in self._sent_zeros.intersection(slots):  # no rank has a gradient, so no step may change it
            slot.parameter.grad = None
