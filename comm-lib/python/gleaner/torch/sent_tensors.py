"""The tensors by which gradients are sent: a gradient of its own, or a pack of several (packs.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import torch

from gleaner.torch.packs import Fusion, kind_of
from gleaner.torch.pool import Pool
from gleaner.torch.slots import Slot
from gleaner.torch.streams import StreamOrder
from gleaner.torch.tensors import TORCH, is_lazy


class SentTensor:
    """A named tensor of the job that carries the gradients of `slots`. Not thread safe.

    take() collects the gradients of a step. The tensor is sent when it has all of them, or after take_zeros().
    """

    slots: Sequence[Slot]
    priority: int  # of its most urgent gradient
    label: str  # its name without that of the optimizer
    description: str  # for messages
    name: str  # its name in the job
    handle: Optional[int] = None  # of the request, from its start until the average has arrived
    is_compressed: bool = False  # the tensor in flight is not gradients() itself
    context: Any = None  # what the compressor needs to decompress the average

    def template(self) -> torch.Tensor:
        """Returns a tensor of the size and type of gradients()."""
        raise NotImplementedError

    def take(self, slot: Slot) -> bool:
        """Takes the noted gradient of a slot. Returns whether all gradients are there."""
        raise NotImplementedError

    def gradients(self) -> torch.Tensor:
        """Returns the tensor to send."""
        raise NotImplementedError

    def is_overwritable(self) -> bool:
        """Returns whether the average may overwrite gradients()."""
        raise NotImplementedError

    def put(self, average: torch.Tensor) -> None:
        """Puts the average, which has arrived, where average_of() finds it."""
        raise NotImplementedError

    def average_of(self, slot: Slot) -> torch.Tensor:
        """Returns the average of a slot's gradient. Call it once after put()."""
        raise NotImplementedError

    def drop(self, slot: Slot) -> None:
        """Forgets the gradient of a slot that take() got. A request in flight is not affected."""

    def reset(self) -> None:
        """Forgets all gradients and the request in flight."""
        self.handle = self.context = None


class OwnTensor(SentTensor):
    """The gradient of one parameter, sent from its own memory."""

    def __init__(self, slot: Slot) -> None:
        self.slots, self.priority, self.label = [slot], slot.priority, f"gradient.{slot.name}"
        self.description = f"the gradient of {slot.name}"
        self._slot = slot
        self._average: Optional[torch.Tensor] = None

    def template(self) -> torch.Tensor:
        return self._slot.parameter.detach()

    def take(self, slot: Slot) -> bool:
        return True

    def gradients(self) -> torch.Tensor:
        return self._slot.noted

    def is_overwritable(self) -> bool:
        return not self._slot.is_view and not is_lazy(self._slot.noted)

    def put(self, average: torch.Tensor) -> None:
        self._average = average

    def average_of(self, slot: Slot) -> torch.Tensor:
        average, self._average = self._average, None
        return average


class Pack(SentTensor):
    """Gradients that are sent as one tensor, from the memory of a pool.

    Slot.note() copies a gradient that autograd has made elsewhere to its place, which becomes parameter.grad. Then
    autograd adds further gradients there until the program drops parameter.grad (`zero_grad(set_to_none=True)`).

    Args:
        number: Number of the pack within its optimizer.
        slots: In the order of the pool, with their places.
        memory: The places of all slots, as one tensor.
    """

    def __init__(self, number: int, slots: Sequence[Slot], memory: torch.Tensor) -> None:
        self.slots, self.priority = slots, min(each.priority for each in slots)
        # With the elements in the name, ranks with different packs get the roll call's error, not one about a tensor.
        self.label = f"pack.{number}.{slots[0].name}-{slots[-1].name}.{memory.numel()}"
        self.description = f"the pack of gradients from {slots[0].name} to {slots[-1].name}"
        self._memory = memory
        self._taken: set[Slot] = set()
        self._streams = StreamOrder(memory.device)

    def template(self) -> torch.Tensor:
        return self._memory

    def take(self, slot: Slot) -> bool:
        self._streams.join()
        self._taken.add(slot)
        return len(self._taken) == len(self.slots)

    def is_waiting(self) -> bool:
        """Returns whether take() has got gradients that are not sent."""
        return bool(self._taken)

    def take_zeros(self) -> None:
        """Takes zeros for all missing gradients, whose parameter.grad keep their values."""
        for slot in self.slots:
            if slot not in self._taken:
                slot.clear_place()
        self._streams.join()

    def gradients(self) -> torch.Tensor:
        self._taken.clear()
        self._streams.follow_all()
        return self._memory

    def is_overwritable(self) -> bool:
        return True

    def put(self, average: torch.Tensor) -> None:
        if average is not self._memory:
            self._memory.copy_(average)
        self._streams.join()

    def average_of(self, slot: Slot) -> torch.Tensor:
        self._streams.follow_all()
        return slot.place

    def drop(self, slot: Slot) -> None:
        self._taken.discard(slot)

    def reset(self) -> None:
        super().reset()
        self._taken.clear()


def sent_tensors(slots: Sequence[Slot], fusion: Fusion, first_number: int = 0) -> list[SentTensor]:
    """Returns the tensors by which the gradients of `slots` are sent, and gives slots in packs their places.

    Args:
        slots: In the order in which backward() makes their gradients.
        fusion: The packs, by place in `slots`.
        first_number: Number of the first pack, as earlier packs of the optimizer have the numbers below.

    Raises:
        TypeError: A gradient in a pack would not be a dense tensor of a type that can be summed.
    """
    packs = _packs(slots, fusion, first_number)
    first = {pack.slots[0]: pack for pack in packs}
    packed = {slot for pack in packs for slot in pack.slots}
    return [first[slot] if slot in first else OwnTensor(slot) for slot in slots if slot in first or slot not in packed]


def _packs(slots: Sequence[Slot], fusion: Fusion, first_number: int) -> list[Pack]:
    kinds: dict[Any, list[tuple[int, list[Slot]]]] = {}
    for number, pack in enumerate(fusion.packs, first_number):
        members = [slots[place] for place in pack]
        kinds.setdefault(kind_of(members[0].parameter), []).append((number, members))
    packs: list[Pack] = []
    for numbered in kinds.values():
        members = [slot for _, pack in numbered for slot in pack]
        for slot in members:
            TORCH.data_type(slot.parameter)
        pool = Pool([slot.parameter for slot in members])
        end = 0
        for slot, place in zip(members, pool.places):
            slot.place = place
        for number, pack in numbered:
            begin, end = end, end + len(pack)
            packs.append(Pack(number, pack, pool.part(begin, end - 1)))
    return packs
