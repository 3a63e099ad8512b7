"""A default group whose ranks change while the processes run: PyTorch's dist._reconfigure().

PyTorch makes such a group by init_process_group(enable_reconfigure=True). It has no ranks until reconfigure(), which
each member calls with the handles of all members. The program exchanges the handles; this module uses the group's store
only to tell the members of a new configuration the port of its job.

- Without a coordinator in the environment, each configuration is a job of its own. Its rank 0 starts the coordinator.
- In an elastic job, each configuration is a round of the job. The job decides which workers take part in a round.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Optional

import torch
import torch.distributed as dist

from gleaner._abi import Collective
from gleaner.errors import FailedPreconditionError, InvalidArgumentError
from gleaner.groups import Group
from gleaner.session import Session
from gleaner.torch.distributed import job, memory
from gleaner.torch.distributed.process_group import ProcessGroup
from gleaner.torch.distributed.works import JoinedWork

_HANDLE_BYTES = 256  # at most; each rank of a round tells its handle
# Number of the group in which ranks of a round tell their handles; those of a process group are smaller.
_ROUND_NUMBER = job.NUMBERS_OF_JOB


class _Unready:
    """The collectives of a group before its first reconfigure()."""

    def __getattr__(self, name: str) -> Any:
        raise FailedPreconditionError("the group has no ranks yet: call torch.distributed._reconfigure() first")

    def close(self) -> None:
        pass


class ReconfigurableGroup(ProcessGroup):
    """A default group that reconfigure() gives its ranks. Groups that were made of it end with the configuration.

    Args:
        store: A store that all members of all configurations reach.
        timeout: Limit of each collective.
    """

    supports_reconfigure = True

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        self._rank, self._size = rank, size
        self._prepare(store, rank, size, timeout, ("cpu", "cuda"))
        self._layers = self._channels = _Unready()
        self._members: list[int] = []
        self._handle = f"{_own_host()}/{secrets.token_hex(16)}"
        self._used: set[int] = set()

    def getRank(self) -> int:
        return self._rank

    def getSize(self) -> int:
        return self._size

    def get_reconfigure_handle(self) -> str:
        return self._handle

    def reconfigure(self, opts: Any) -> JoinedWork:
        """Gives the group its ranks, and waits until all of them have called this with the same arguments.

        Args:
            opts: PyTorch's ReconfigureOptions: the number of the configuration, which was never used before, and the
                handles of its members. In a list they are in the order of ranks; a set has any order. `hints` have no
                effect. In an elastic job the coordinator's --start-timeout limits the time instead of `timeout`.

        Returns:
            A work that has ended.

        Raises:
            InvalidArgumentError: The number was used, or this rank is no member or is one twice.
            UnavailableError: Members have not called this in time, or are lost.
            FailedPreconditionError: Other workers than the members take part in the round of an elastic job.
            GleanerError: As in gleaner.init().
        """
        handles = sorted(opts.handles) if isinstance(opts.handles, (set, frozenset)) else list(opts.handles)
        if opts.uuid in self._used:
            raise InvalidArgumentError(f"configuration {opts.uuid} was used before; give each one a new number")
        if handles.count(self._handle) != 1 or len(set(handles)) != len(handles):
            raise InvalidArgumentError("reconfigure: the handles must have that of each member once, and of this rank")
        self._used.add(opts.uuid)
        self._end()
        self._layers = self._channels = _Unready()  # until this succeeds
        store = dist.PrefixStore(f"configuration/{opts.uuid}", self._store)
        seconds = self._timeout if opts.timeout is None else opts.timeout.total_seconds()
        if job.has_coordinator():
            joined = job.rejoin(store)
            told = _handles_of_round(joined.session, self._handle)
            _check_round(told, handles)
            if isinstance(opts.handles, (set, frozenset)):
                handles = told
            members = [told.index(handle) for handle in handles]
        else:
            joined = _restarted(store, handles, handles.index(self._handle), seconds)
            members = list(range(len(handles)))
        self._rank, self._size = handles.index(self._handle), len(handles)
        self._begin(joined, joined.first_number, store, members)
        return JoinedWork([])


def _restarted(store: Any, handles: Sequence[str], rank: int, seconds: float) -> job.Job:
    before = store.timeout
    store.set_timeout(timedelta(seconds=seconds))
    try:
        return job.restart(store, rank, len(handles), handles[0].partition("/")[0], seconds)
    finally:
        store.set_timeout(before)


def _handles_of_round(session: Session, own: str) -> list[str]:
    """Returns the handles of all ranks of the round, in their order. Collective."""
    group = Group(session, _ROUND_NUMBER, range(session.rank_info.size))
    source = torch.frombuffer(bytearray(own.encode().ljust(_HANDLE_BYTES)), dtype=torch.uint8)
    rows = torch.empty((group.size, _HANDLE_BYTES), dtype=torch.uint8)
    blocks = memory.block(source), memory.block(rows)
    session.synchronize(group.start(Collective.ALL_GATHER, "reconfigure", *blocks))
    group.close()
    return [row.numpy().tobytes().decode().rstrip() for row in rows]


def _check_round(told: Sequence[str], expected: Sequence[str]) -> None:
    if set(told) != set(expected):
        raise FailedPreconditionError(
            f"{len(told)} workers take part in this round of the elastic job, and {len(expected)} were passed to "
            f"reconfigure(), of which {len(set(expected) - set(told))} do not: pass the handles of all workers"
        )


def _own_host() -> str:
    """Returns an address of this machine by which other ranks reach it, as a part of HOST:PORT."""
    address: Optional[str] = os.environ.get("GLEANER_ADDRESS")
    if address:
        return address.rpartition(":")[0]
    host = job.host_of_rank_0()
    family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as towards:
        towards.connect((host.strip("[]"), 9))  # sends nothing
        own = towards.getsockname()[0]
    if own.startswith("127.") or own == "::1":
        return host  # MASTER_ADDR is this machine
    return f"[{own}]" if family == socket.AF_INET6 else own
