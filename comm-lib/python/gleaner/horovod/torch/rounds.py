"""Rounds in which each rank of a group tells all others some bytes."""

from __future__ import annotations

import torch

from gleaner._abi import Collective
from gleaner.groups import Group
from gleaner.torch.distributed import memory

_SLOT_BYTES = 2048  # what each rank tells in the first call of a round, with its length
_LENGTH_BYTES = 8


class Rounds:
    """The rounds of a group. One thread at a time uses them."""

    def __init__(self, group: Group) -> None:
        self._group = group

    def exchange(self, own: bytes) -> list[bytes]:
        """Returns what each rank passes to this call, in the order of ranks. Collective; waits for all ranks.

        Raises:
            GleanerError: The session has failed.
        """
        room = _SLOT_BYTES - _LENGTH_BYTES
        slots = self._gather(len(own).to_bytes(_LENGTH_BYTES, "little") + own[:room], _SLOT_BYTES)
        lengths = [int.from_bytes(slot[:_LENGTH_BYTES], "little") for slot in slots]
        told = [slot[_LENGTH_BYTES:] for slot in slots]
        if max(lengths) > room:
            rests = self._gather(own[room:], max(lengths) - room)
            told = [start + rest for start, rest in zip(told, rests)]
        return [each[:length] for each, length in zip(told, lengths)]

    def _gather(self, own: bytes, size: int) -> list[bytes]:
        source = torch.frombuffer(bytearray(own.ljust(size, b"\0")), dtype=torch.uint8)
        rows = torch.empty((self._group.size, size), dtype=torch.uint8)
        blocks = memory.block(source), memory.block(rows)
        self._group.session.synchronize(self._group.start(Collective.ALL_GATHER, "negotiation", *blocks))
        return [row.numpy().tobytes() for row in rows]
