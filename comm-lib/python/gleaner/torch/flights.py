"""Sends gradients from their own memory, and makes their averages parameter.grad."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from gleaner import exchange
from gleaner.errors import FailedPreconditionError, InvalidArgumentError
from gleaner.exchange import PushPullOptions
from gleaner.lasting import LastingInputs
from gleaner.session import Session
from gleaner.torch.claims import Claims
from gleaner.torch.compression import Compressor
from gleaner.torch.recycled import RecycledTensors
from gleaner.torch.tensors import TORCH, is_lazy


class GradientInFlight(torch.Tensor):
    """Replaces parameter.grad while the gradient is in flight; every use of it raises FailedPreconditionError.

    A version counter would not suffice: it detects neither writes through `.data` and `.numpy()` nor reads, which may
    see a partly averaged gradient. Autograd in C++ does not see the replacement, and can still add to the memory.
    """

    why: str  # message of the error

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
    """A parameter of an optimizer, and the state of its gradient."""

    parameter: torch.nn.Parameter
    name: str
    priority: int
    is_view: bool = False  # other gradients may share the memory of this gradient
    noted: torch.Tensor | None = None  # parameter.grad when note() was called
    stand_in: GradientInFlight | None = None  # replaces `noted` as parameter.grad in flight
    version: int = 0  # version counter of `noted` when note() was called
    tensor: str = ""  # name of the tensor under which the gradient is sent
    handle: int = 0  # handle of the request while the gradient is in flight
    is_compressed: bool = False  # the tensor in flight is not the gradient itself
    context: Any = None  # what the compressor needs to decompress the average

    def note(self) -> None:
        """Notes parameter.grad, so that is_as_noted() detects later changes of it."""
        gradient = self.parameter.grad
        if not gradient.requires_grad:
            # `.data` is an alias with its own version counter. Gradients that are parts of one tensor share a counter.
            gradient = gradient.data
            self.parameter.grad = gradient
        self.noted, self.version = gradient, gradient._version

    def is_as_noted(self) -> bool:
        """Returns whether parameter.grad is still the noted gradient, or its stand-in, and is unchanged."""
        expected = self.noted if self.stand_in is None else self.stand_in
        return self.parameter.grad is expected and self.noted._version == self.version

    def install_stand_in(self, why: str) -> None:
        """Makes every use of parameter.grad raise an error with the message `why`.

        The effect ends with remove_stand_in(), or when the program assigns another value to parameter.grad.
        """
        self.stand_in = torch.Tensor._make_subclass(GradientInFlight, self.noted)  # shares the version counter
        self.stand_in.why = why
        self.parameter.grad = self.stand_in

    def remove_stand_in(self) -> None:
        """Makes the noted gradient parameter.grad again, unless the program has assigned another value."""
        if self.stand_in is not None and self.parameter.grad is self.stand_in:
            self.parameter.grad = self.noted
        self.stand_in = None


class Flights:
    """Sends the gradients of one optimizer, and makes their averages parameter.grad. Not thread safe.

    An average overwrites its gradient. If another gradient may share that memory, if the gradient is lazy (tensors.py),
    or if `compression` compresses it, the average gets its own memory.
    """

    def __init__(self, slots: list[Slot], compression: Compressor) -> None:
        self._slots, self._compression = slots, compression
        self._averages = RecycledTensors(each.parameter for each in slots)
        self._claims = Claims()  # memory that averages of gradients in flight overwrite
        self._in_flight: dict[Slot, None] = {}  # in sending order; the values are unused

    def enter(self, session: Session, name: str) -> None:
        """Sends further gradients through `session`, as tensors whose names begin with `name`."""
        self._session = session
        self._lasting = session.attached(LastingInputs)
        for slot in self._slots:
            slot.tensor = f"{name}.gradient.{slot.name}"

    def declare(self, slots: Iterable[Slot]) -> None:
        for slot in slots:
            tensor, _ = self._compression.compress(slot.parameter.detach())
            self._session.declare(slot.tensor, TORCH.elements(tensor), TORCH.data_type(tensor), slot.priority)

    def __len__(self) -> int:
        return len(self._in_flight)

    def __contains__(self, slot: Slot) -> bool:
        return slot in self._in_flight

    def all(self) -> list[Slot]:
        return list(self._in_flight)

    def send(self, slot: Slot, why: str) -> None:
        """Sends the noted parameter.grad. Until finish() every use of it raises an error with the message `why`."""
        gradient = slot.noted
        if gradient.layout is not torch.strided:
            raise InvalidArgumentError(
                f"the gradient of {slot.name} is sparse, and only dense gradients can be averaged: make its layer with "
                "sparse=False (torch.nn.Embedding, torch.nn.EmbeddingBag)"
            )
        tensor, slot.context = self._compression.compress(gradient)
        slot.is_compressed = tensor is not gradient
        slot.handle = self._push_pull(slot, tensor, in_place=slot.is_compressed or self._prepare(slot))
        self._in_flight[slot] = None
        slot.install_stand_in(why)

    def _prepare(self, slot: Slot) -> bool:
        """Prepares to send the gradient itself. Returns whether the average may overwrite it."""
        lazy = is_lazy(slot.noted)
        if not lazy:
            self._lasting.register_if_unmoved(slot.tensor, TORCH, slot.noted)
        if slot.is_view or lazy:
            return False
        self._claim(slot)
        return True

    def finish(self, slots: Iterable[Slot]) -> list[Slot]:
        """Waits for the averages of `slots`, which become parameter.grad.

        Returns the slots whose gradients the program changed while they were in flight.
        """
        changed = []
        for slot in slots:
            del self._in_flight[slot]
            self._claims.release(slot.name)
            if not slot.is_as_noted():
                changed.append(slot)
            slot.remove_stand_in()
            average = self._session.synchronize(slot.handle)
            slot.parameter.grad = self._compression.decompress(average, slot.context) if slot.is_compressed else average
            slot.is_view, slot.noted, slot.context = False, None, None
        return changed

    def give_zeros(self, slots: Iterable[Slot]) -> None:
        """Contributes zeros to averages that other ranks make, waits for these averages and discards them."""
        zeros = [(each, self._compression.compress(torch.zeros_like(each.parameter))[0]) for each in slots]
        handles = [self._push_pull(slot, tensor, in_place=True) for slot, tensor in zeros]
        for handle in handles:
            self._session.synchronize(handle)

    def drop(self, slots: Iterable[Slot]) -> None:
        """Stops waiting for these gradients. Averages still overwrite them later, so parameter.grad becomes None."""
        for slot in slots:
            del self._in_flight[slot]
            self._claims.release(slot.name)
            if slot.parameter.grad is slot.stand_in:
                slot.parameter.grad = None
            slot.stand_in = None

    def forget(self) -> None:
        """Forgets all gradients in flight without waiting for them, as after the end of the session or an error."""
        for slot in self._in_flight:
            slot.remove_stand_in()
        self._in_flight.clear()
        self._claims.clear()

    def _push_pull(self, slot: Slot, gradient: torch.Tensor, in_place: bool) -> int:
        options = PushPullOptions(name=slot.tensor, priority=slot.priority, in_place=in_place)
        return exchange.push_pull_async(self._session, self._averages, gradient, options)

    def _claim(self, slot: Slot) -> None:
        earlier = self._claims.claim(slot.noted, slot.name)
        if earlier is not None:
            raise InvalidArgumentError(
                f"the gradient of {slot.name} shares memory with the gradient of {earlier}, which is in flight; give "
                "each parameter its own gradient (grad.clone())"
            )
