"""Averages the important chunks of gradients over all ranks (coarse-grained sparse communication, CSC).

Source: GradientFlow §3.2. A step of one rank, for the chunks of all its gradients (chunks.py):

    take()        gradient + history, in the pool; a packet leaves when all its chunks are complete
    send_rest()   other packets; the L1 norms of the chunks that are not sent, for their sum over ranks
    land()        averages of packets ──▶ important chunks of the pool
    keep_rest()   chunks that are not sent: momentum * pool ──▶ history, 0 ──▶ pool (Algorithm 1, lines 8 to 11)
    complete()    sums of norms, and norms of averages ──▶ the important chunks of the next step

All ranks choose the same chunks. Sums of norms have the same bits on all ranks, and so have averages, whose norms
l1_norms() adds in one order on every device. The norms of the chunks that are not sent need no average, so they travel
beside the packets.

If the norm of a chunk is not finite, the step does not count: history and the choice of chunks stay as they were, and
all ranks set the chunk to NaN, so that GradScaler skips the step on all ranks.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Callable, Optional

import numpy
import torch

from gleaner import exchange, sums
from gleaner.errors import InvalidArgumentError
from gleaner.exchange import PushPullOptions
from gleaner.session import DataType, Session
from gleaner.torch.chunks import Chunks, Runs, most_important
from gleaner.torch.compression import Compressor
from gleaner.torch.packets import Packets
from gleaner.torch.pool import Pool
from gleaner.torch.sparsity import Sparsity, sent_in
from gleaner.torch.streams import StreamOrder
from gleaner.torch.tensors import DATA_TYPES, TORCH

_PACKET_BYTES = 4 << 20  # of a packet if the program gives no fusion_bytes: large messages that still overlap
_PRIORITY = -1  # of the norms: the next step waits for them


class SparsePool:
    """The gradients of a list of parameters, which are numbers here, and their history. Not thread safe.

    Args:
        named: Names and parameters, in the order in which backward() makes their gradients.
        sparsity: The settings.
        fusion_bytes: Most bytes of a packet; None: 4 MiB.
        compression: The compressor of packets.
        prioritize: As in Packets.
        momenta: Returns the factor of each parameter's history, if the settings have none.

    Raises:
        InvalidArgumentError: The parameters have several types or devices, or gaps in memory.
    """

    places: list[torch.Tensor]  # by parameter: the view of the pool for its gradient

    def __init__(
        self,
        named: Sequence[tuple[str, torch.Tensor]],
        sparsity: Sparsity,
        fusion_bytes: Optional[float],
        compression: Compressor,
        prioritize: bool,
        momenta: Callable[[], Sequence[float]],
    ) -> None:
        _check_alike(named)
        parameters = [parameter for _, parameter in named]
        sizes = [each.numel() for each in parameters]
        self._sparsity, self._momenta = sparsity, momenta
        self._chunks = Chunks(sizes, sparsity.chunk_elements)
        self._pool, self._history = (Pool(parameters, sparsity.chunk_elements) for _ in range(2))
        self.places = self._pool.places
        self._rows = self._pool.memory.view(-1, sparsity.chunk_elements)
        chunk_bytes = sparsity.chunk_elements * self._pool.memory.element_size()
        most = min((fusion_bytes or _PACKET_BYTES) / chunk_bytes, self._chunks.number)
        self._packets = Packets(self._rows, max(1, int(most)), compression, prioritize)
        self._settings = zlib.crc32(repr((sparsity, self._packets.most, sizes)).encode())
        self._lacking = [0] * self._chunks.number  # by chunk: number of gradients with elements in it
        for number in range(len(sizes)):
            for chunk in self._chunks.of(number):
                self._lacking[chunk] += 1
        self._step = 0  # number of averaging rounds so far
        self._important = numpy.arange(self._chunks.number)  # chunks of the step that has begun, ascending
        self._updated = numpy.ones(self._chunks.number, bool)  # by chunk: whether the last averages update parameters
        self._streams = StreamOrder(self._pool.memory.device)
        self._norms = torch.zeros(self._chunks.number, dtype=torch.float32, device=self._rows.device)  # of averages
        self._handle: Optional[int] = None  # of the sums of norms in flight
        self.taken: set[int] = set()  # parameters whose gradients of this step are in the pool
        self.is_sent = False  # the step is between send_rest() and complete()
        self._is_kept = False  # keep_rest() has made the history of the step

    def enter(self, session: Session, name: str) -> None:
        """Sends further gradients through `session`, as tensors whose names begin with `name`."""
        self._session, self._norms_name = session, f"{name}.norms.{self._chunks.number}"
        self._packets.enter(session, f"{name}.packet")
        session.declare(self._norms_name, self._chunks.number, DataType.FLOAT32, _PRIORITY)
        self._begin()

    def _begin(self) -> None:
        self.taken.clear()
        self.is_sent = self._is_kept = False
        self._handle = None
        self._packets.begin(self._important, self._lacking)

    def fingerprint(self) -> int:
        """Returns a number from 1 to 2**31 - 1 that most likely differs if this step sends other chunks."""
        return (zlib.crc32(self._important.tobytes(), self._settings) & 0x7FFFFFFF) or 1

    def take(self, number: int) -> None:
        """Takes the gradient of a parameter, which is in its place. Completes the step before."""
        self.complete()
        self.places[number].add_(self._history.places[number])
        self.taken.add(number)
        self._streams.join()
        self._streams.follow_all()  # a packet has gradients of several streams
        for chunk in self._chunks.of(number):
            self._packets.fill(chunk)

    def send_rest(self) -> None:
        """Sends the rest of the step. Places without a gradient, which no rank has, hold zeros."""
        self._streams.follow_all()
        # Averages may overwrite important chunks meanwhile, so these norms mean nothing and are not sent.
        norms = l1_norms(self._rows) if self._rows.device.type == "cpu" else _norms_in_any_order(self._rows)
        self._packets.send_rest()
        self._updated = numpy.zeros(self._chunks.number, bool)
        self._updated[self._important] = True
        norms.index_fill_(0, self._on_device(self._updated), 0)
        options = PushPullOptions(average=False, name=self._norms_name, priority=_PRIORITY, in_place=True)
        self._handle = exchange.push_pull_async(self._session, TORCH, norms, options)
        rest = self._pool.memory.numel() - self._pool.rest.numel() - len(self._important) * self._rows.shape[1]
        self._session.count_saved(rest * self._pool.memory.element_size())
        self.is_sent = True

    def keep_rest(self) -> None:
        """Makes the history of chunks that are not sent, and clears their gradients.

        The history of a parameter without a gradient stays. complete() does this for a step that counts. A caller that
        gives gradients to the program before complete() does it after send_rest(), and also for a step that does not
        count.
        """
        absent = [number for number in range(len(self.places)) if number not in self.taken]
        kept = [self._history.places[each].clone() for each in absent]
        given = self._sparsity.momentum
        momenta = [given] * len(self.places) if given is not None else self._momenta()
        if len(set(momenta)) == 1:
            torch.mul(self._pool.memory, momenta[0], out=self._history.memory)
        else:
            for place, momentum, history in zip(self.places, momenta, self._history.places):
                torch.mul(place, momentum, out=history)
        self._history.memory.view_as(self._rows).index_fill_(0, self._on_device(self._updated), 0)
        for number, history in zip(absent, kept):
            self._history.places[number].copy_(history)
        self._clear_rest()
        self._is_kept = True

    def land(self, numbers: Optional[Iterable[int]] = None) -> None:
        """Waits for the averages of some parameters' gradients; None: of all."""
        self._streams.follow_all()
        self._take_sums()
        chunks = None if numbers is None else {chunk for each in numbers for chunk in self._chunks.of(each)}
        for landed, average in self._packets.land(chunks):
            self._norms.index_copy_(0, landed, l1_norms(average))

    def _take_sums(self) -> None:
        """Waits for the sums of norms. If one is not finite, parameters in its chunk become NaN on all ranks."""
        if self._handle is None:
            return
        handle, self._handle = self._handle, None
        self._sums = self._session.synchronize(handle).cpu().numpy()
        self._spoil(~numpy.isfinite(self._sums))

    def _spoil(self, broken: numpy.ndarray) -> None:
        if broken.any():
            self._rows.index_fill_(0, self._on_device(broken), float("nan"))
            self._pool.rest.zero_()
            self._updated |= broken

    def complete(self) -> None:
        """Waits for all averages of a step that send_rest() has sent, if it is not complete, and ends it."""
        if self.is_sent:
            self.land()
            self._end_step()

    def _end_step(self) -> None:
        """Chooses the chunks of the next step."""
        norms = self._sums
        averages = self._norms.cpu().numpy() * numpy.float32(self._session.rank_info.size)
        norms[self._important] = averages[self._important]
        broken = ~numpy.isfinite(norms)
        if broken.any():
            if not self._is_kept:
                self._clear_rest()
            self._spoil(broken)
        else:
            if not self._is_kept:
                self.keep_rest()
            self._step += 1
            sent = sent_in(self._sparsity, self._step, self._chunks.number)
            self._important = most_important(norms, sent)
        self._begin()

    def _clear_rest(self) -> None:
        self._rows.index_fill_(0, self._on_device(~self._updated), 0)

    def give_zeros(self) -> None:
        """Contributes zeros to averages that other ranks make, and follows their choice of chunks."""
        self._pool.memory.zero_()
        self.send_rest()
        self.complete()

    def forget(self) -> None:
        """Forgets a step that has not ended, as after the end of the session or an error."""
        if self.taken or self.is_sent:
            self._begin()

    def runs(self, numbers: Iterable[int]) -> Optional[list[Runs]]:
        """Returns the elements of parameters that the last averages update; None: all elements of all parameters."""
        return None if self._updated.all() else [self._chunks.runs(each, self._updated) for each in numbers]

    def state(self) -> dict[str, Any]:
        """Returns what load() needs to go on after the last step. `history` is this rank's own, and no copy.

        A step that send_rest() has sent is completed first.
        """
        self.complete()
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
                f"the state of sparsity has {chunks} chunks of {state['chunk_elements']} elements, and the parameters "
                f"have {self._chunks.number} of {self._sparsity.chunk_elements}: pass the Sparsity with which the "
                "state was saved, for the same parameters"
            )
        self._step, self._important = int(state["step"]), state["important"].cpu().numpy().copy()
        self._history.memory.copy_(state["history"])
        self._packets.begin(self._important, self._lacking)

    def _on_device(self, chosen: numpy.ndarray) -> torch.Tensor:
        """Returns the numbers of the chosen chunks."""
        return torch.from_numpy(numpy.flatnonzero(chosen)).to(self._rows.device)


def l1_norms(rows: torch.Tensor) -> torch.Tensor:
    """Returns the L1 norm of each row as float32, with the same bits on every device and processor.

    PyTorch's functions for norms add in an order that depends on the device. Here the second half of all columns is
    added to the first half until one column is left: [a, b, c, d, e] -> [a + d, b + e, c] -> [a + d + c, b + e] -> sum.
    A kernel of the library does this for rows in the memory of the host, and halved_norms() for rows on a GPU.

    Args:
        rows: A contiguous matrix of floats.
    """
    if rows.device.type != "cpu":
        return halved_norms(rows)
    norms = torch.empty(len(rows), dtype=torch.float32)
    sums.l1_norms(DATA_TYPES[rows.dtype], rows.data_ptr(), *rows.shape, norms.data_ptr())
    return norms


def _norms_in_any_order(rows: torch.Tensor) -> torch.Tensor:
    """Returns the L1 norms of rows, which need not have the same bits on all devices, in one pass on a GPU."""
    return torch.linalg.vector_norm(rows, 1, dim=1, dtype=torch.float32)


def halved_norms(rows: torch.Tensor) -> torch.Tensor:
    """Returns what l1_norms() does, with operations that PyTorch has on every device."""
    added = rows.abs().to(torch.float32)
    while added.shape[1] > 1:
        half = (added.shape[1] + 1) // 2
        added[:, : added.shape[1] - half] += added[:, half:]
        added = added[:, :half]
    return added[:, 0].masked_fill(added[:, 0].isnan(), float("nan"))


def _check_alike(named: Sequence[tuple[str, torch.Tensor]]) -> None:
    kinds = sorted({f"{each.dtype} on {each.device}" for _, each in named})
    if len(kinds) != 1:
        raise InvalidArgumentError(
            f"sparsity needs parameters of one type on one device, and these are {' and '.join(kinds) or 'none'}: "
            "convert or move them before you wrap the optimizer or the model, or wrap each kind by itself"
        )
    for name, parameter in named:
        if parameter.stride() != torch.empty_like(parameter, device="meta").stride():
            raise InvalidArgumentError(
                f"sparsity needs parameters without gaps in memory, and {name} has some: make it a parameter of "
                "tensor.clone(memory_format=torch.contiguous_format)"
            )
