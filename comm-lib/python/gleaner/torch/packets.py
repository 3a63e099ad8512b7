"""Packets: the tensors that carry the important chunks of a step. Source: GradientFlow §3.2."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

import numpy
import torch

from gleaner import exchange
from gleaner.exchange import PushPullOptions
from gleaner.session import Session
from gleaner.torch.chunks import packet_sizes
from gleaner.torch.compression import Compressor, compressed
from gleaner.torch.tensors import TORCH


@dataclass
class _Packet:
    name: str
    priority: int
    chunks: list[int]
    numbers: torch.Tensor  # of its chunks, on the device of the pool
    missing: int  # number of gradients that its chunks still lack
    memory: Optional[torch.Tensor] = None  # the tensor to send, from its start on
    handle: Optional[int] = None  # of the request in flight
    is_compressed: bool = False  # the tensor in flight is not `memory` itself
    context: Any = None  # what the compressor needs to decompress the average


@dataclass
class Packets:
    """Sends the packets of one optimizer. Not thread safe.

    Chunks that lie next to each other in the pool are sent from there; others are copied to a packet's own memory.

    Attributes:
        rows: The pool, shape (chunks, elements of a chunk).
        most: Number of chunks of a full packet.
        compression: The compressor of packets.
        prioritize: Packets with the last chunks of the pool, which the next forward pass needs first, are sent first.
        prefix: What the names of the packets' tensors begin with.
    """

    rows: torch.Tensor
    most: int
    compression: Compressor
    prioritize: bool
    prefix: str = ""
    _session: Optional[Session] = None
    _packets: list[_Packet] = field(default_factory=list)
    _packet_of: dict[int, _Packet] = field(default_factory=dict)
    _memory: dict[str, torch.Tensor] = field(default_factory=dict)  # by name: that of packets which are not in the pool

    def enter(self, session: Session, prefix: str) -> None:
        """Declares the tensors of all packets that steps may have, and sends further packets through `session`."""
        self._session, self.prefix = session, prefix
        sizes = [self.most] * (len(self.rows) // self.most)
        sizes += [1 << bit for bit in range((self.most - 1).bit_length()) if 1 << bit <= len(self.rows)]
        for number, size in enumerate(sizes):
            tensor, _, sent_as = compressed(self.compression, self.rows[:size])
            shape = TORCH.elements(tensor), TORCH.data_type(tensor)
            session.declare(self._name(number, size), *shape, self._priority(number, size), sent_as=sent_as)

    def begin(self, chunks: numpy.ndarray, lacking: Sequence[int]) -> None:
        """Prepares the packets of a step.

        Args:
            chunks: The chunks to send, ascending.
            lacking: By chunk of the pool: number of gradients with elements in it.
        """
        numbers = torch.from_numpy(chunks).to(self.rows.device)
        self._packets, begin = [], 0
        for number, size in enumerate(packet_sizes(len(chunks), self.most)):
            end = begin + size
            members = chunks[begin:end].tolist()
            tensor = self._name(number, size), self._priority(number, size)
            self._packets.append(_Packet(*tensor, members, numbers[begin:end], sum(lacking[each] for each in members)))
            begin = end
        self._packet_of = {chunk: packet for packet in self._packets for chunk in packet.chunks}
        names = {packet.name for packet in self._packets}
        self._memory = {name: memory for name, memory in self._memory.items() if name in names}

    def fill(self, chunk: int) -> None:
        """Notes that one more gradient with elements in a chunk of this step is in the pool. Sends complete packets."""
        packet = self._packet_of.get(chunk)
        if packet is None:
            return
        packet.missing -= 1
        if packet.missing == 0:
            self._send(packet)

    def send_rest(self) -> None:
        """Sends the packets that fill() has not sent, with the pool as it is."""
        for packet in self._packets:
            if packet.handle is None:
                self._send(packet)

    def land(self, chunks: Optional[Collection[int]] = None) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Waits for the averages of packets, which replace their chunks in the pool.

        Args:
            chunks: Waits for the packets with some of these chunks; None: for all.

        Returns:
            For each of these packets that had not landed: the numbers of its chunks, and their averages.
        """
        chosen = self._packets if chunks is None else {id(each): each for each in self._of(chunks)}.values()
        for packet in chosen:
            if packet.handle is None:
                continue
            average = self._session.synchronize(packet.handle)
            if packet.is_compressed:
                average = self.compression.decompress(average, packet.context)
            average = average.view(len(packet.chunks), -1)
            if packet.is_compressed or not self._is_in_pool(packet):
                self.rows.index_copy_(0, packet.numbers, average)
            packet.handle = packet.memory = packet.context = None
            yield packet.numbers, average

    def _of(self, chunks: Collection[int]) -> Iterator[_Packet]:
        return (self._packet_of[each] for each in chunks if each in self._packet_of)

    def _name(self, number: int, size: int) -> str:
        """Returns the name of a packet of `size` chunks; of those that are not full, there is one of a size in a step.

        With the elements in the name, ranks with other chunks get the roll call's error, and not one about a tensor.
        """
        shape = f"{size}x{self.rows.shape[1]}"
        return f"{self.prefix}.{number}.{shape}" if size == self.most else f"{self.prefix}.{shape}"

    def _priority(self, number: int, size: int) -> int:
        """Returns the same priority for the same name. Packets that are not full have the last chunks of a step."""
        most = len(self.rows) // self.most
        return most - number if self.prioritize and size == self.most else 0

    def _send(self, packet: _Packet) -> None:
        packet.memory = self._gather(packet)
        tensor, packet.context, sent_as = compressed(self.compression, packet.memory)
        packet.is_compressed = tensor is not packet.memory
        options = PushPullOptions(name=packet.name, priority=packet.priority, in_place=True, sent_as=sent_as)
        packet.handle = exchange.push_pull_async(self._session, TORCH, tensor, options)

    def _gather(self, packet: _Packet) -> torch.Tensor:
        first = packet.chunks[0]
        if self._is_in_pool(packet):
            return self.rows[first : first + len(packet.chunks)]
        memory = self._memory.get(packet.name)
        if memory is None:
            memory = self._memory[packet.name] = torch.empty_like(self.rows[: len(packet.chunks)])
        return torch.index_select(self.rows, 0, packet.numbers, out=memory)

    def _is_in_pool(self, packet: _Packet) -> bool:
        return packet.chunks[-1] - packet.chunks[0] + 1 == len(packet.chunks)
