"""Groups of ranks, and their collectives that move bytes between the memory of hosts.

A call is one collective of a group, as one rank makes it. All ranks of a group must make the same calls in the same
order, with sizes that fit; a difference ends the session with an error that names the ranks. Calls of different groups
may come in any order. Memory is given as a `Block`. The calls move bytes and do not add: a reduction is a call, after
which each rank adds what it has received in the order of ranks. Threads: as in gleaner.session; one thread at a time
starts the calls of a group.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Sequence
from typing import NamedTuple

from gleaner import _abi
from gleaner._abi import Collective
from gleaner.errors import GleanerError
from gleaner.session import Session


class Block(NamedTuple):
    """Some memory: its address, its bytes, and the object that keeps it alive."""

    address: int
    size: int
    owner: object


NOTHING = Block(0, 0, None)


class Group:
    """A group of ranks, of which this rank is one.

    Attributes:
        session: The session of this rank.
        members: Ranks of the job; rank i of the group is members[i].
        rank: This rank in the group.
        size: Number of ranks of the group.

    All members must make the group, with the same arguments.

    Args:
        session: The session of this rank.
        number: Number of the group, 0 to 2**31 - 1; no other group of this rank has or had it.
        members: Ranks of the job; member i has rank i.

    Raises:
        InvalidArgumentError: A rank is named twice or does not exist, this rank is no member, or the group exists.
        FailedPreconditionError: Workers have several local ranks, or the session is closed or inherited.
    """

    def __init__(self, session: Session, number: int, members: Sequence[int]) -> None:
        session.call("gln_add_group", number, (ctypes.c_uint32 * len(members))(*members), len(members))
        self.session = session
        self.number = number
        self.members = tuple(members)
        self.rank = self.members.index(session.rank_info.rank)
        self.size = len(self.members)

    def close(self) -> None:
        """Removes the group; leaves it if calls are in flight, or if the session has ended. Nobody may use it then."""
        with contextlib.suppress(GleanerError):
            self.session.call("gln_remove_group", self.number)

    def has_arrived(self) -> bool:
        """Returns whether bytes of another rank have come for this rank's next call.

        Raises:
            FailedPreconditionError: The session is closed or inherited.
            GleanerError: The session has failed; see gleaner.errors.
        """
        arrived = ctypes.c_int()
        self.session.call("gln_has_arrived", self.number, ctypes.byref(arrived))
        return bool(arrived.value)

    def start(
        self, collective: Collective, name: str, given: Block, result: Block, root: int = 0, kind: int = 0
    ) -> int:
        """Starts a call with blocks of one size, and returns its handle for Session.synchronize().

        Args:
            collective: The collective.
            name: Name of the call in errors.
            given: The blocks with which this rank begins, one after the other. NOTHING where it has none.
            result: The blocks with which this rank ends. They must not overlap `given`, except that an all-gather may
                find this rank's own block where it belongs.
            root: Rank of the group, for collectives that have a root.
            kind: Number less than 2048 that must be the same on all ranks, such as one of the elements' type.

        Raises:
            InvalidArgumentError: Sizes or pointers are wrong.
            FailedPreconditionError: The session is closed or inherited.
            GleanerError: The session has failed; see gleaner.errors.
        """
        call = self._call(collective, given, result, kind)
        call.root = root
        return self._start(call, name, (given, result))

    def start_exchange(
        self, name: str, given: Block, result: Block, sent: Sequence[int], received: Sequence[int], kind: int = 0
    ) -> int:
        """Starts an all-to-all with blocks of any sizes, and returns its handle for Session.synchronize().

        Args:
            name: Name of the call in errors.
            given: The bytes for all ranks, one after the other.
            result: The bytes from all ranks; may not overlap `given`.
            sent: Number of bytes for each rank.
            received: Number of bytes from each rank.
            kind: As in start().

        Raises:
            GleanerError: As in start().
        """
        call = self._call(Collective.ALL_TO_ALL, given, result, kind)
        call.sent = (ctypes.c_uint64 * self.size)(*sent)
        call.received = (ctypes.c_uint64 * self.size)(*received)
        call.ranks = self.size
        return self._start(call, name, (given, result))

    def _call(self, collective: Collective, given: Block, result: Block, kind: int) -> _abi.Call:
        call = _abi.Call(ctypes.sizeof(_abi.Call), self.number, collective)
        call.input, call.input_bytes = given.address, given.size
        call.output, call.output_bytes = result.address, result.size
        call.kind = kind
        return call

    def _start(self, call: _abi.Call, name: str, memory: tuple[Block, Block]) -> int:
        """Starts a call. Its input and output, which `memory` owns, must stay as they are until it is done."""
        return self.session.start("gln_start_call", [ctypes.byref(call)], name, lambda: memory)
