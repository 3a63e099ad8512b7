"""Gives the gradients of an optimizer to a SparsePool, which sends their important chunks.

Source: GradientFlow §3.2. sparse_step.py lets the optimizer step for the parameters in these chunks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Callable, Optional

import torch

from gleaner.errors import FailedPreconditionError
from gleaner.session import Session
from gleaner.torch.chunks import Runs
from gleaner.torch.compression import Compressor
from gleaner.torch.slots import Slot
from gleaner.torch.sparse_pool import SparsePool
from gleaner.torch.sparsity import Sparsity


class SparseFlights:
    """Has the functions of Flights for gradients that are sent in important chunks. Not thread safe.

    Args:
        slots: All slots of the optimizer, in the order in which backward() makes their gradients.
        sparsity: The settings.
        fusion_bytes: As in SparsePool.
        compression: As in SparsePool.
        prioritize: As in SparsePool.
        groups: Returns the parameter groups of the optimizer.

    Raises:
        InvalidArgumentError: As in SparsePool, for the parameters that require a gradient.
    """

    def __init__(
        self,
        slots: Sequence[Slot],
        sparsity: Sparsity,
        fusion_bytes: Optional[float],
        compression: Compressor,
        prioritize: bool,
        groups: Callable[[], Sequence[Mapping[str, Any]]],
    ) -> None:
        self._slots = [each for each in slots if each.parameter.requires_grad]
        self._number_of = numbers = {slot.parameter: number for number, slot in enumerate(self._slots)}

        def momenta() -> list[float]:
            factors = {each: group["momentum"] for group in groups() for each in group["params"]}
            return [factors[each] for each in numbers]

        named = [(each.name, each.parameter) for each in self._slots]
        self.pool = SparsePool(named, sparsity, fusion_bytes, compression, prioritize, momenta)
        for slot, place in zip(self._slots, self.pool.places):
            slot.place = place
        self._in_flight: dict[Slot, None] = {}

    def enter(self, session: Session, name: str) -> None:
        """Sends further gradients through `session`, as tensors whose names begin with `name`."""
        self.pool.enter(session, name)

    def declare(self, slots: Iterable[Slot]) -> None:
        """Does nothing: enter() has declared all tensors."""

    def fingerprint(self) -> int:
        """Returns that of the chunks of this step (SparsePool)."""
        return self.pool.fingerprint()

    def __len__(self) -> int:
        return len(self._in_flight)

    def __contains__(self, slot: Slot) -> bool:
        return slot in self._in_flight

    def all(self) -> list[Slot]:
        return list(self._in_flight)

    def send(self, slot: Slot) -> None:
        """Takes the noted parameter.grad. Until finish() every use of it raises an error."""
        number = self._number_of.get(slot.parameter)
        if number is None:
            raise FailedPreconditionError(
                f"{slot.name} required no gradient when the optimizer was wrapped with sparsity, and requires one now; "
                "wrap the optimizer after parameters are frozen or unfrozen"
            )
        self.pool.take(number)
        slot.version = slot.place._version
        self._in_flight[slot] = None
        slot.install_stand_in()

    def send_incomplete(self) -> None:
        """Sends the rest of the step, with zeros for the gradients that no rank has."""
        if not self.pool.taken:
            return
        for number, slot in enumerate(self._slots):
            if number not in self.pool.taken:
                slot.clear_place()
        self.pool.send_rest()

    def postpone(self) -> None:
        """Sends the rest of the step as send_incomplete() does, for finish() to wait for some gradients at a time."""
        self.send_incomplete()
        if self.pool.is_sent:
            self.pool.keep_rest()

    def finish(self, slots: Iterable[Slot]) -> list[Slot]:
        """Waits for the averages of slots in flight, which become parameter.grad.

        With the last slot in flight the step ends, and the next chunks are chosen.

        Returns the slots whose gradients the program changed while they were in flight.
        """
        slots = list(slots)
        changed = [each for each in slots if not each.is_as_noted()]
        for slot in slots:
            del self._in_flight[slot]
            slot.remove_stand_in()
        if not self._in_flight:
            self.pool.complete()
        elif self.pool.is_sent:
            self.pool.land([self._number_of[each.parameter] for each in slots])
        for slot in slots:
            slot.take_average(slot.place)
        return changed

    def give_zeros(self, slots: Iterable[Slot]) -> None:
        """Contributes zeros to averages that other ranks make, and follows their choice of chunks."""
        if any(True for _ in slots):
            self.pool.give_zeros()

    def drop(self, slots: Iterable[Slot]) -> None:
        """Stops waiting for these gradients. Averages still overwrite them later, so parameter.grad becomes None."""
        for slot in slots:
            del self._in_flight[slot]
            slot.drop()

    def forget(self) -> None:
        """Forgets all gradients in flight without waiting for them, as after the end of the session or an error."""
        for slot in self._in_flight:
            slot.remove_stand_in()
        self._in_flight.clear()
        self.pool.forget()

    def runs(self, parameters: Iterable[torch.nn.Parameter]) -> Optional[dict[torch.nn.Parameter, Runs]]:
        """Returns the elements of each parameter that the last averages update; None: all elements."""
        numbers = {each: self._number_of[each] for each in parameters if each in self._number_of}
        runs = self.pool.runs(numbers.values())
        return None if runs is None else dict(zip(numbers, runs))
