"""Sends and receives between two ranks of a process group.

Each (source, destination, tag) is a channel: a group of two ranks, whose calls match the sends with the receives in
their order. The ranks agree on its number by the store, when one of them uses it first.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

import torch

from gleaner._abi import Collective
from gleaner.errors import DeadlineExceededError, InvalidArgumentError
from gleaner.groups import NOTHING, Block, Group
from gleaner.torch.distributed import memory, reductions
from gleaner.torch.distributed.job import Job
from gleaner.torch.distributed.works import GleanerWork, LaterReceive, RequestWork

Tag = Union[int, str]


@dataclass
class _Posted:
    """A receive that begins later. `source`: None: from any rank."""

    tensor: torch.Tensor
    timeout: float
    source: Optional[int] = None
    receive: Optional[RequestWork] = None


class Channels:
    """The channels of one rank of a group.

    Args:
        job: The job of this process.
        store: Store of the group.
        members: The members' ranks in the job.
        rank: This rank in the group.
    """

    def __init__(self, job: Job, store: Any, members: Sequence[int], rank: int) -> None:
        self._job = job
        self._store = store
        self._members = list(members)
        self._rank = rank
        self._groups: dict[tuple[int, int, Tag], Group] = {}
        self._posted: dict[Tag, deque[_Posted]] = {}  # receives that have not begun, from any rank and after those
        self._lock = threading.Lock()  # of their beginning: several threads may wait for them
        self._round = 0  # number of monitored barriers
        self._words: dict[int, tuple[GleanerWork, torch.Tensor]] = {}  # for which monitored_barrier() waits, by rank

    def close(self) -> None:
        for group in self._groups.values():
            group.close()
        self._groups.clear()

    def send(self, tensor: torch.Tensor, destination: int, tag: Tag, timeout: float) -> RequestWork:
        """Sends a tensor. The work ends once the destination has begun to receive."""
        memory.check(tensor)
        group, source = self._group(self._rank, destination, tag), memory.given(tensor)
        block, kind = _message(source)
        handle = group.start(Collective.BROADCAST, "send", block, NOTHING, 0, kind)
        name = f"send to rank {destination}"
        return RequestWork(self._job.session, [handle], lambda: None, name, [tensor], timeout)

    def receive(self, tensor: torch.Tensor, source: int, tag: Tag, timeout: float) -> GleanerWork:
        """Receives from a rank, after the receives from any rank that were posted with this tag before."""
        memory.check(tensor)
        self._group(source, self._rank, tag)
        if self._is_any_waiting(tag):
            return self._post(_Posted(tensor, timeout, source), tag)
        return self._receive_now(tensor, source, tag, timeout)

    def receive_any(self, tensor: torch.Tensor, tag: Tag, timeout: float) -> LaterReceive:
        """Receives from the rank that sends first. The work's `source` tells which one it was."""
        memory.check(tensor)
        return self._post(_Posted(tensor, timeout), tag)

    def _receive_now(self, tensor: torch.Tensor, source: int, tag: Tag, timeout: float) -> RequestWork:
        group, target = self._group(source, self._rank, tag), memory.room(tensor)
        block, kind = _message(target)
        handle = group.start(Collective.BROADCAST, "recv", NOTHING, block, 0, kind)
        work = RequestWork(
            self._job.session,
            [handle],
            lambda: memory.take_over(tensor, target),
            f"recv from rank {source}",
            [tensor],
            timeout,
        )
        work.source = source
        return work

    def _post(self, posted: _Posted, tag: Tag) -> LaterReceive:
        self._posted.setdefault(tag, deque()).append(posted)

        def receive() -> Optional[RequestWork]:
            self._is_any_waiting(tag)
            return posted.receive

        return LaterReceive(receive, posted.tensor, posted.timeout)

    def _is_any_waiting(self, tag: Tag) -> bool:
        """Begins the receives that were posted with this tag, in their order, as far as ranks have sent.

        Returns:
            Whether some have not begun.
        """
        posted = self._posted.get(tag)
        if posted is None:
            return False
        with self._lock:
            while posted:
                first = posted[0]
                source = self._first_sender(tag) if first.source is None else first.source
                if source is None:
                    return True
                first.receive = self._receive_now(first.tensor, source, tag, first.timeout)
                posted.popleft()
        return False

    def _first_sender(self, tag: Tag) -> Optional[int]:
        for rank in range(len(self._members)):
            if rank != self._rank and self._group(rank, self._rank, tag).has_arrived():
                return rank
        return None

    def meet(self, seconds: float, names_all: bool) -> None:
        """Waits until all ranks have called this as often as this rank. Rank 0 raises an error that names the others.

        Args:
            seconds: Time limit.
            names_all: True: rank 0 waits for all ranks, and names all that are late; False: the first one.
        """
        self._round += 1
        until = time.monotonic() + seconds
        if self._rank == 0:
            self._meet_others(until, seconds, names_all)
            return
        self._expect(0, "met")
        sent = self.send(torch.tensor([self._round]), 0, "meet", seconds)
        if not _ends(sent, until) or not self._has_met(0, "met", until):
            raise DeadlineExceededError(
                f"Rank {self._rank} successfully reached monitoredBarrier, but received errors while waiting for "
                "send/recv from rank 0. Rank 0's error names the rank that is late"
            )

    def _meet_others(self, until: float, seconds: float, names_all: bool) -> None:
        if seconds <= 0:
            raise DeadlineExceededError("Rank 0 timed out in monitoredBarrier, which had no time")
        others, late = range(1, len(self._members)), []
        for rank in others:
            self._expect(rank, "meet")
        for rank in others:
            if not self._has_met(rank, "meet", until):
                late.append(str(rank))
                if not names_all:
                    break
        if late:
            ranks = f"Ranks {', '.join(late)}" if names_all else f"Rank {late[0]}"
            raise DeadlineExceededError(f"{ranks} failed to pass monitoredBarrier in {seconds * 1000:g} ms")
        for rank in others:
            self.send(torch.tensor([self._round]), rank, "met", seconds).wait()

    def _expect(self, rank: int, tag: str) -> None:
        """Begins to receive a rank's word, unless it is expected since an earlier barrier."""
        if rank not in self._words:
            word = torch.zeros(1, dtype=torch.int64)
            self._words[rank] = (self.receive(word, rank, tag, 0), word)

    def _has_met(self, rank: int, tag: str, until: float) -> bool:
        """Returns whether a rank's word of this barrier comes in time. Words of earlier barriers don't count."""
        while _ends(self._words[rank][0], until):
            if self._words.pop(rank)[1].item() >= self._round:
                return True
            self._expect(rank, tag)
        return False

    def _group(self, source: int, destination: int, tag: Tag) -> Group:
        for rank in (source, destination):
            if not 0 <= rank < len(self._members):
                raise InvalidArgumentError(f"rank {rank} does not exist in this group, which has {len(self._members)}")
        if source == destination:
            raise InvalidArgumentError(f"rank {source} can't send to itself")
        key = (source, destination, tag)
        if key not in self._groups:
            number = self._job.numbers(self._store, f"channel/{source}/{destination}/{tag}", 1)
            members = [self._members[source], self._members[destination]]
            self._groups[key] = Group(self._job.session, number, members)
        return self._groups[key]


def _message(tensor: torch.Tensor) -> tuple[Block, int]:
    """Returns the block of a message with the tensor, and its kind.

    The message of an empty tensor has a byte: a rank that receives from any rank sees bytes only.
    """
    if tensor.numel():
        return memory.block(tensor), reductions.kind(tensor)
    return memory.block(torch.zeros(1, dtype=torch.uint8)), reductions.kind(tensor, "BARRIER")


def _ends(work: GleanerWork, until: float) -> bool:
    """Returns whether the work ends in time. Raises its error."""
    try:
        work.end_within(max(0.0, until - time.monotonic()))
    except DeadlineExceededError:
        return False
    return work.wait()
