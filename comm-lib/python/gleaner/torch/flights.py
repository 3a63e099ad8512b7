"""Gradients in flight: each is sent from where it lies, and its average comes to be parameter.grad."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from gleaner import exchange
from gleaner.errors import FailedPreconditionError, InvalidArgumentError
from gleaner.lasting import LastingInputs
from gleaner.session import Session
from gleaner.torch.claims import Claims
from gleaner.torch.recycled import RecycledTensors
from gleaner.torch.tensors import TORCH


class GradientInFlight(torch.Tensor):
    """Stands in for parameter.grad while the gradient is in flight: every use of it raises.

    The version counter of a tensor tells nothing of writes through `.data` and `.numpy()`, and a read would see a
    gradient of which a part is an average already. Autograd itself, in C++, still adds to the memory.
    """

    why: str

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise FailedPreconditionError(next(_in_flight_among([*args, *(kwargs or {}).values()])).why)


def _in_flight_among(arguments: Iterable[Any]) -> Iterator[GradientInFlight]:
    for each in arguments:
        if isinstance(each, GradientInFlight):
            yield each
        elif isinstance(each, (list, tuple)):
            yield from _in_flight_among(each)


@dataclass(eq=False)
class Slot:
    """A parameter of an optimizer, and what is known of its gradient."""

    parameter: torch.nn.Parameter
    name: str
    priority: int
    is_view: bool = False  # its gradient may lie in memory of others' as well
    seen: torch.Tensor | None = None  # the gradient as backward left it
    stand_in: GradientInFlight | None = None  # is parameter.grad in its place
    version: int = 0  # of `seen`
    tensor: str = ""  # by what name its gradient is sent
    handle: int = 0  # while it is in flight

    def see(self) -> None:
        """Notes the gradient, so that a later change of it shows."""
        gradient = self.parameter.grad
        if not gradient.requires_grad:
            # An alias with a version counter of its own: gradients may be parts of one tensor, and share its counter.
            gradient = gradient.data
            self.parameter.grad = gradient
        self.seen, self.version = gradient, gradient._version

    def is_as_seen(self) -> bool:
        expected = self.seen if self.stand_in is None else self.stand_in
        return self.parameter.grad is expected and self.seen._version == self.version

    def hide(self, why: str) -> None:
        """Makes every use of parameter.grad raise `why`, until show() or another assignment."""
        self.stand_in = torch.Tensor._make_subclass(GradientInFlight, self.seen)  # with the same version counter
        self.stand_in.why = why
        self.parameter.grad = self.stand_in

    def show(self) -> None:
        if self.stand_in is not None and self.parameter.grad is self.stand_in:
            self.parameter.grad = self.seen
        self.stand_in = None


class Flights:
    """Sends gradients of one optimizer, and puts their averages in place. Not thread safe.

    Averages overwrite gradients where no other gradient may lie in the same memory.
    """

    def __init__(self, slots: list[Slot]) -> None:
        self._slots = slots
        self._averages = RecycledTensors(each.parameter for each in slots)
        self._claims = Claims()  # memory that averages in flight overwrite
        self._in_flight: dict[Slot, None] = {}  # in the order in which they were sent

    def enter(self, session: Session, name: str) -> None:
        """From now on gradients go through `session`; their tensors' names begin with `name`."""
        self._session = session
        self._lasting = session.attached(LastingInputs)
        for slot in self._slots:
            slot.tensor = f"{name}.gradient.{slot.name}"

    def declare(self, slots: Iterable[Slot]) -> None:
        for slot in slots:
            elements, data_type = TORCH.elements(slot.parameter), TORCH.data_type(slot.parameter)
            self._session.declare(slot.tensor, elements, data_type, slot.priority)

    def __len__(self) -> int:
        return len(self._in_flight)

    def __contains__(self, slot: Slot) -> bool:
        return slot in self._in_flight

    def all(self) -> list[Slot]:
        return list(self._in_flight)

    def send(self, slot: Slot, why: str) -> None:
        """Sends parameter.grad, which see() has noted; until finish() a use of parameter.grad raises `why`."""
        gradient = slot.seen
        if gradient.layout is not torch.strided:
            raise InvalidArgumentError(
                f"the gradient of {slot.name} is sparse, and only dense ones can be averaged: make its layer with "
                "sparse=False (torch.nn.Embedding, torch.nn.EmbeddingBag)"
            )
        if not slot.is_view:
            self._claim(slot)
        self._lasting.look(slot.tensor, TORCH, gradient)
        slot.handle = self._push_pull(slot, gradient, in_place=not slot.is_view)
        self._in_flight[slot] = None
        slot.hide(why)

    def finish(self, slots: Iterable[Slot]) -> list[Slot]:
        """Waits for the averages of these, and puts them in place; returns those that were changed in flight."""
        changed = []
        for slot in slots:
            del self._in_flight[slot]
            self._claims.give_up(slot.name)
            if not slot.is_as_seen():
                changed.append(slot)
            slot.show()
            slot.parameter.grad = self._session.synchronize(slot.handle)
            slot.is_view, slot.seen = False, None
        return changed

    def give_zeros(self, slots: Iterable[Slot]) -> None:
        """Takes part in the others' averages without using them; waits until they are done."""
        handles = [self._push_pull(each, torch.zeros_like(each.parameter), in_place=True) for each in slots]
        for handle in handles:
            self._session.synchronize(handle)

    def drop(self, slots: Iterable[Slot]) -> None:
        """Gives up these gradients. Averages still overwrite their memory, so the parameters have no gradient now."""
        for slot in slots:
            del self._in_flight[slot]
            self._claims.give_up(slot.name)
            if slot.parameter.grad is slot.stand_in:
                slot.parameter.grad = None
            slot.stand_in = None

    def forget(self) -> None:
        """The session has ended, or an error has: nobody waits for what is in flight."""
        for slot in self._in_flight:
            slot.show()
        self._in_flight.clear()
        self._claims.clear()

    def _push_pull(self, slot: Slot, gradient: torch.Tensor, in_place: bool) -> int:
        return exchange.push_pull_async(
            self._session,
            self._averages,
            gradient,
            average=True,
            name=slot.tensor,
            priority=slot.priority,
            in_place=in_place,
        )

    def _claim(self, slot: Slot) -> None:
        whose = self._claims.make(slot.seen, slot.name)
        if whose is not None:
            raise InvalidArgumentError(
                f"the gradient of {slot.name} lies in memory that {whose}'s is sent from; give each parameter a "
                "gradient of its own (grad.clone())"
            )
