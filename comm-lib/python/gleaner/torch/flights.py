"""Sends gradients, and makes their averages parameter.grad."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Optional

import torch

from gleaner import exchange
from gleaner.codec import SentAs
from gleaner.errors import InvalidArgumentError
from gleaner.exchange import PushPullOptions
from gleaner.lasting import LastingInputs
from gleaner.session import Session
from gleaner.torch.claims import Claims
from gleaner.torch.compression import Compressor, compressed
from gleaner.torch.recycled import RecycledTensors
from gleaner.torch.sent_tensors import Pack, SentTensor
from gleaner.torch.slots import Slot
from gleaner.torch.tensors import TORCH, is_lazy


class Flights:
    """Sends the gradients of one optimizer, and makes their averages parameter.grad. Not thread safe.

    A gradient is in flight from send() to finish(). If it is in a pack, it waits for the pack's other gradients first,
    until send_incomplete() at the latest.

    An average overwrites its gradient. If another gradient may share that memory, if the gradient is lazy (tensors.py),
    or if `compression` compresses it, the average gets its own memory; in a pack it is then copied to its place.
    """

    def __init__(self, sent: Sequence[SentTensor], fingerprint: int, compression: Compressor) -> None:
        self._sent, self._fingerprint, self._compression = sent, fingerprint, compression
        self._sent_of = {slot: each for each in sent for slot in each.slots}
        self._packs = [each for each in sent if isinstance(each, Pack)]
        self._averages = RecycledTensors(each.template() for each in sent if not isinstance(each, Pack))
        self._claims = Claims()  # memory that averages of gradients in flight overwrite
        self._in_flight: dict[Slot, None] = {}  # in sending order; the values are unused

    def enter(self, session: Session, name: str) -> None:
        """Sends further gradients through `session`, as tensors whose names begin with `name`."""
        self._session = session
        self._lasting = session.attached(LastingInputs)
        for each in self._sent:
            each.name = f"{name}.{each.label}"

    def leave(self) -> None:
        """Unregisters the memory of gradients, none of which is in flight, since other flights send the next ones."""
        for each in self._sent:
            self._lasting.forget(each.name)

    def declare(self, slots: Iterable[Slot]) -> None:
        """Declares the tensors that carry gradients of `slots`, in this order."""
        for each in self._tensors_of(slots):
            tensor, _, sent_as = compressed(self._compression, each.template())
            shape = TORCH.elements(tensor), TORCH.data_type(tensor)
            self._session.declare(each.name, *shape, each.priority, sent_as=sent_as)

    def _tensors_of(self, slots: Iterable[Slot]) -> list[SentTensor]:
        return list(dict.fromkeys(self._sent_of[slot] for slot in slots))

    def fingerprint(self) -> int:
        """Returns that of the packs (packs.Fusion)."""
        return self._fingerprint

    def runs(self, _: Iterable[torch.nn.Parameter]) -> None:
        """Returns None: averages update all elements of parameters."""
        return None

    def __len__(self) -> int:
        return len(self._in_flight)

    def __contains__(self, slot: Slot) -> bool:  # the hooks call it, and a look into a dict takes longer
        return slot.stand_in is not None

    def all(self) -> list[Slot]:
        return list(self._in_flight)

    def send(self, slot: Slot) -> None:
        """Sends the noted parameter.grad. Until finish() every use of it raises an error."""
        slot.check_dense(slot.noted)
        sent = self._sent_of[slot]
        if sent.take(slot):
            self._start(sent)
        self._in_flight[slot] = None
        slot.install_stand_in()

    def send_incomplete(self) -> None:
        """Sends the packs that have only some of their gradients, with zeros for the others."""
        for pack in self._packs:
            if pack.is_waiting():
                pack.take_zeros()
                self._start(pack)

    def _start(self, sent: SentTensor) -> None:
        gradients = sent.gradients()
        tensor, sent.context, sent_as = compressed(self._compression, gradients)
        sent.is_compressed = tensor is not gradients
        in_place = sent.is_compressed or self._prepare(sent, gradients, sent_as)
        sent.handle = self._push_pull(sent, tensor, in_place, sent_as)

    def _prepare(self, sent: SentTensor, gradients: torch.Tensor, sent_as: Optional[SentAs]) -> bool:
        """Prepares to send `gradients` themselves. Returns whether the average may overwrite them."""
        if sent_as is None and not is_lazy(gradients):  # the library sends what it rounds from memory of its own
            self._lasting.register_if_unmoved(sent.name, TORCH, gradients)
        if not sent.is_overwritable():
            return False
        self._claim(sent, gradients)
        return True

    def finish(self, slots: Iterable[Slot]) -> list[Slot]:
        """Waits for the averages of `slots`, which become parameter.grad.

        Returns the slots whose gradients the program changed while they were in flight.
        """
        changed = []
        for slot in slots:
            sent = self._sent_of[slot]
            del self._in_flight[slot]
            if not slot.is_as_noted():
                changed.append(slot)
            slot.remove_stand_in()
            self._land(sent)
            slot.take_average(sent.average_of(slot))
        return changed

    def _land(self, sent: SentTensor) -> None:
        """Waits for the average of a tensor, unless it has arrived."""
        if sent.handle is None:
            return
        self._claims.release(sent.description)
        average = self._session.synchronize(sent.handle)
        sent.put(self._compression.decompress(average, sent.context) if sent.is_compressed else average)
        sent.handle = sent.context = None

    def give_zeros(self, slots: Iterable[Slot]) -> float:
        """Contributes zeros to averages that other ranks make, waits for these averages and discards them.

        Returns the seconds from the first request to the last average.
        """
        zeros = [
            (each, *compressed(self._compression, torch.zeros_like(each.template())))
            for each in self._tensors_of(slots)
        ]
        begin = time.perf_counter()
        handles = [self._push_pull(sent, tensor, True, sent_as) for sent, tensor, _, sent_as in zeros]
        for handle in handles:
            self._session.synchronize(handle)
        return time.perf_counter() - begin

    def drop(self, slots: Iterable[Slot]) -> None:
        """Stops waiting for these gradients. Averages still overwrite them later, so parameter.grad becomes None."""
        for slot in slots:
            sent = self._sent_of[slot]
            del self._in_flight[slot]
            sent.drop(slot)
            if not any(each in self._in_flight for each in sent.slots):
                self._claims.release(sent.description)
            slot.drop()

    def forget(self) -> None:
        """Forgets all gradients in flight without waiting for them, as after the end of the session or an error."""
        for slot in self._in_flight:
            slot.remove_stand_in()
            self._sent_of[slot].reset()
        self._in_flight.clear()
        self._claims.clear()

    def _push_pull(self, sent: SentTensor, gradients: torch.Tensor, in_place: bool, sent_as: Optional[SentAs]) -> int:
        options = PushPullOptions(name=sent.name, priority=sent.priority, in_place=in_place, sent_as=sent_as)
        return exchange.push_pull_async(self._session, self._averages, gradients, options)

    def _claim(self, sent: SentTensor, gradients: torch.Tensor) -> None:
        earlier = self._claims.claim(gradients, sent.description)
        if earlier is not None:
            raise InvalidArgumentError(
                f"{sent.description} shares memory with {earlier}, which is in flight; give each parameter its own "
                "gradient (grad.clone())"
            )
