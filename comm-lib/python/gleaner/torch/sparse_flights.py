"""Sends the important chunks of gradients (coarse-grained sparse communication, CSC). Source: GradientFlow §3.2.

A step of one rank, for the chunks of all its gradients (chunks.py):

    backward()    gradient + history ──▶ its place in the pool; a packet leaves when all its chunks are complete
    finish()      averages of packets ──▶ important chunks of the pool
                  L1 norms of all chunks, summed over ranks ──▶ the important chunks of the next step
                  other chunks: momentum * pool ──▶ history, 0 ──▶ pool
    step()        updates the parameters in important chunks (sparse_step.py)

All ranks choose the same chunks, since sums of norms have the same bits on all ranks. If the norm of a chunk is not
finite, the step does not count: history and the choice of chunks stay as they were, and all ranks set the chunk to NaN,
so that GradScaler skips the step on all ranks.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Callable, Optional

import numpy
import torch

from gleaner import arrays, exchange
from gleaner.errors import FailedPreconditionError, InvalidArgumentError
from gleaner.exchange import PushPullOptions
from gleaner.session import DataType, Session
from gleaner.torch.chunks import Chunks, most_important
from gleaner.torch.compression import Compressor
from gleaner.torch.packets import Packets
from gleaner.torch.pool import Pool
from gleaner.torch.slots import Slot
from gleaner.torch.sparse_step import Runs
from gleaner.torch.sparsity import Sparsity, sent_in
from gleaner.torch.streams import StreamOrder

_PACKET_BYTES = 4 << 20  # of a packet if the program gives no fusion_bytes: large messages that still overlap
_PRIORITY = -1  # of the norms: the next step waits for them


class SparseFlights:
    """Has the functions of Flights for gradients that are sent in important chunks. Not thread safe.

    Args:
        slots: All slots of the optimizer, in the order in which backward() makes their gradients.
        sparsity: The settings.
        fusion_bytes: Most bytes of a packet; None: 4 MiB.
        compression: The compressor of packets.
        groups: Returns the parameter groups of the optimizer.

    Raises:
        InvalidArgumentError: The parameters that require a gradient have several types or devices, or gaps in memory.
    """

    def __init__(
        self,
        slots: Sequence[Slot],
        sparsity: Sparsity,
        fusion_bytes: Optional[float],
        compression: Compressor,
        groups: Callable[[], Sequence[Mapping[str, Any]]],
    ) -> None:
        self._slots = [each for each in slots if each.parameter.requires_grad]
        self._number_of = {slot: number for number, slot in enumerate(self._slots)}
        _check_alike(self._slots)
        parameters = [each.parameter for each in self._slots]
        self._sparsity, self._groups = sparsity, groups
        self._chunks = Chunks([each.numel() for each in parameters], sparsity.chunk_elements)
        self._pool, self._history = (Pool(parameters, sparsity.chunk_elements) for _ in range(2))
        for slot, place in zip(self._slots, self._pool.places):
            slot.place = place
        self._rows = self._pool.memory.view(-1, sparsity.chunk_elements)
        chunk_bytes = sparsity.chunk_elements * self._pool.memory.element_size()
        most = min((fusion_bytes or _PACKET_BYTES) / chunk_bytes, self._chunks.number)
        self._packets = Packets(self._rows, max(1, int(most)), compression)
        settings = repr((sparsity, self._packets.most, [each.numel() for each in parameters]))
        self._settings = zlib.crc32(settings.encode())
        self._lacking = [0] * self._chunks.number  # by chunk: number of gradients with elements in it
        for number in range(len(self._slots)):
            for chunk in self._chunks.of(number):
                self._lacking[chunk] += 1
        self._step = 0  # number of averaging rounds so far
        self._important = numpy.arange(self._chunks.number)  # chunks of the step that has begun, ascending
        self._updated = numpy.ones(self._chunks.number, bool)  # by chunk: whether the last averages update parameters
        self._streams = StreamOrder(self._pool.memory.device)
        self._in_flight: dict[Slot, None] = {}
        self._taken: set[Slot] = set()  # slots whose gradients of this step are in the pool

    def enter(self, session: Session, name: str) -> None:
        """Sends further gradients through `session`, as tensors whose names begin with `name`."""
        self._session, self._norms_name = session, f"{name}.norms.{self._chunks.number}"
        self._packets.enter(session, f"{name}.packet")
        session.declare(self._norms_name, self._chunks.number, DataType.FLOAT32, _PRIORITY)
        self._packets.begin(self._important, self._lacking)

    def declare(self, slots: Iterable[Slot]) -> None:
        """Does nothing: enter() has declared all tensors."""

    def fingerprint(self) -> int:
        """Returns a number from 1 to 2**31 - 1 that most likely differs if this step sends other chunks."""
        return (zlib.crc32(self._important.tobytes(), self._settings) & 0x7FFFFFFF) or 1

    def __len__(self) -> int:
        return len(self._in_flight)

    def __contains__(self, slot: Slot) -> bool:
        return slot in self._in_flight

    def all(self) -> list[Slot]:
        return list(self._in_flight)

    def send(self, slot: Slot) -> None:
        """Takes the noted parameter.grad. Until finish() every use of it raises an error."""
        number = self._number_of.get(slot)
        if number is None:
            raise FailedPreconditionError(
                f"{slot.name} required no gradient when the optimizer was wrapped with sparsity, and requires one now; "
                "wrap the optimizer after parameters are frozen or unfrozen"
            )
        slot.place.add_(self._history_of(slot))
        slot.version = slot.place._version
        self._taken.add(slot)
        self._in_flight[slot] = None
        slot.install_stand_in()
        self._streams.join()
        self._streams.follow_all()  # a packet has gradients of several streams
        for chunk in self._chunks.of(number):
            self._packets.fill(chunk)

    def send_incomplete(self) -> None:
        """Sends the rest of the step, with zeros for the gradients that no rank has."""
        if not self._taken:
            return
        for slot in self._slots:
            if slot not in self._taken:
                slot.clear_place()
        self._packets.send_rest()

    def finish(self, slots: Iterable[Slot]) -> list[Slot]:
        """Waits for the averages of all slots in flight, which become parameter.grad, and chooses the next chunks.

        Returns the slots whose gradients the program changed while they were in flight.
        """
        slots = list(slots)
        changed = [each for each in slots if not each.is_as_noted()]
        for slot in slots:
            del self._in_flight[slot]
            slot.remove_stand_in()
        if self._taken:
            self._streams.follow_all()
            self._packets.land()
            self._end_step([each for each in self._slots if each not in self._taken])
        for slot in slots:
            slot.take_average(slot.place)
        return changed

    def give_zeros(self, slots: Iterable[Slot]) -> None:
        """Contributes zeros to averages that other ranks make, and follows their choice of chunks."""
        if not any(True for _ in slots):
            return
        self._pool.memory.zero_()
        self._packets.send_rest()
        self._packets.land()
        self._end_step(self._slots)

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
        if self._taken:  # the step has not ended
            self._taken.clear()
            self._packets.begin(self._important, self._lacking)

    def runs(self) -> Optional[dict[torch.nn.Parameter, Runs]]:
        """Returns the elements of each parameter that the last averages update; None: all elements."""
        if self._updated.all():
            return None
        return {slot.parameter: self._chunks.runs(number, self._updated) for slot, number in self._number_of.items()}

    def state(self) -> dict[str, Any]:
        """Returns what load() needs to go on after the last step. `history` is this rank's own, and no copy."""
        return {
            "step": self._step,
            "important": torch.from_numpy(self._important.copy()),
            "chunk_elements": self._sparsity.chunk_elements,
            "history": self._history.memory,
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Goes on from a state() of this rank or of another one.

        Raises:
            InvalidArgumentError: The state is of other chunks.
        """
        chunks = state["history"].numel() // state["chunk_elements"]
        if (state["chunk_elements"], chunks) != (self._sparsity.chunk_elements, self._chunks.number):
            raise InvalidArgumentError(
                f"the optimizer's state has {chunks} chunks of {state['chunk_elements']} elements, and the optimizer "
                f"{self._chunks.number} of {self._sparsity.chunk_elements}: wrap it with the Sparsity with which the "
                "state was saved, around the same parameters"
            )
        self._step, self._important = int(state["step"]), state["important"].cpu().numpy().copy()
        self._history.memory.copy_(state["history"])
        self._packets.begin(self._important, self._lacking)

    def _end_step(self, absent: Sequence[Slot]) -> None:
        """Chooses the next chunks, and keeps what was not sent. `absent`: slots without a gradient on any rank."""
        norms = self._sum(torch.linalg.vector_norm(self._rows, 1, dim=1, dtype=torch.float32))
        self._updated = numpy.zeros(self._chunks.number, bool)
        self._updated[self._important] = True
        broken = ~numpy.isfinite(norms)
        if broken.any():
            self._rows.index_fill_(0, self._on_device(~self._updated), 0)
            self._rows.index_fill_(0, self._on_device(broken), float("nan"))
            self._pool.rest.zero_()
            self._updated |= broken
        else:
            self._keep_rest(absent)
            self._step += 1
            sent = sent_in(self._sparsity, self._step, self._chunks.number)
            self._important = most_important(norms, sent)
        self._taken.clear()
        self._packets.begin(self._important, self._lacking)

    def _sum(self, norms: torch.Tensor) -> numpy.ndarray:
        options = PushPullOptions(average=False, name=self._norms_name, priority=_PRIORITY, in_place=True)
        handle = exchange.push_pull_async(self._session, arrays.NUMPY, norms.cpu().numpy(), options)
        return self._session.synchronize(handle)

    def _keep_rest(self, absent: Sequence[Slot]) -> None:
        """Makes the history of chunks that were not sent (Algorithm 1, lines 8 to 11), and clears their gradients."""
        of_absent = [self._history_of(each).clone() for each in absent]
        momenta = self._momenta()
        if len({momenta[each.parameter] for each in self._slots}) == 1:
            torch.mul(self._pool.memory, momenta[self._slots[0].parameter], out=self._history.memory)
        else:
            for slot in self._slots:
                torch.mul(slot.place, momenta[slot.parameter], out=self._history_of(slot))
        self._history.memory.view_as(self._rows).index_fill_(0, self._on_device(self._updated), 0)
        for slot, kept in zip(absent, of_absent):
            self._history_of(slot).copy_(kept)
        self._rows.index_fill_(0, self._on_device(~self._updated), 0)

    def _momenta(self) -> dict[torch.nn.Parameter, float]:
        """Returns the factor of each parameter's history."""
        chosen = self._sparsity.momentum
        return {
            parameter: group["momentum"] if chosen is None else chosen
            for group in self._groups()
            for parameter in group["params"]
        }

    def _history_of(self, slot: Slot) -> torch.Tensor:
        return self._history.places[self._number_of[slot]]

    def _on_device(self, chosen: numpy.ndarray) -> torch.Tensor:
        """Returns the numbers of the chosen chunks."""
        return torch.from_numpy(numpy.flatnonzero(chosen)).to(self._rows.device)


def _check_alike(slots: Sequence[Slot]) -> None:
    kinds = sorted({f"{each.parameter.dtype} on {each.parameter.device}" for each in slots})
    if len(kinds) != 1:
        raise InvalidArgumentError(
            f"sparsity needs parameters of one type on one device, and these are {' and '.join(kinds) or 'none'}: "
            "convert or move them before you wrap the optimizer, or use one optimizer for each kind"
        )
    for slot in slots:
        if slot.parameter.stride() != torch.empty_like(slot.parameter, device="meta").stride():
            raise InvalidArgumentError(
                f"sparsity needs parameters without gaps in memory, and {slot.name} has some: make it a parameter of "
                "tensor.clone(memory_format=torch.contiguous_format)"
            )
