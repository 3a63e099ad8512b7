"""How a process of torch.distributed joins its Gleaner job, and how groups get their numbers.

`gleaner run` and a TrainingJob tell the processes their coordinator. Without one, as under torchrun, rank 0 starts a
coordinator, and the store of torch.distributed carries its address and token to the other ranks. The coordinator ends
by itself after the last rank has left, and a lost rank ends it as in every job.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
import sys
import time
from multiprocessing import util
from typing import Any, Optional

import torch.distributed as dist

from gleaner import _programs, process
from gleaner.errors import FailedPreconditionError, GleanerError, UnavailableError
from gleaner.session import Session

# Numbers of groups of one init_process_group(). A session has at most 2**31 numbers.
_NUMBERS = 1 << 20
# Numbers that one process group has.
NUMBERS_OF_GROUP = 2


class Job:
    """The job of this process, from init_process_group() on.

    Attributes:
        session: The session of this rank.
        store: Store of the default group.
        first_number: First of the numbers of the default group. No rank needs the store for them: it may be gone, with
            a rank 0 that ends at once.
    """

    def __init__(self, session: Session, store: Any, generation: int) -> None:
        self.session = session
        self.store = store
        self._generation = generation  # how often this process has joined before, the same on all ranks
        self.first_number = generation * _NUMBERS

    def numbers(self, store: Any, key: str, count: int) -> int:
        """Returns the first of `count` numbers that belong to `key` of `store`. All ranks that ask get the same.

        Whoever asks first takes the numbers; the others wait for its answer.
        """
        key = f"gleaner/{self._generation}/{key}"  # stores may outlive a default group
        if store.add(f"{key}/asked", 1) == 1:
            taken = self.store.add(f"gleaner/{self._generation}/numbers", count)
            number = NUMBERS_OF_GROUP + taken - count
            store.set(f"{key}/number", str(number))
        else:
            number = int(store.get(f"{key}/number"))
        if number + count > _NUMBERS:
            raise FailedPreconditionError(f"more than {_NUMBERS} groups and channels since init_process_group()")
        return self.first_number + number


def count_before(number: int) -> int:
    """Returns how many numbers groups and channels had taken before this one, since init_process_group()."""
    return number % _NUMBERS


_present: Optional[Job] = None
_times_joined = 0
_own: Optional[_OwnCoordinator] = None


def join(store: Any, rank: int, size: int) -> Job:
    """Joins the job for the default group, or returns the job that this process has joined for it."""
    global _present, _times_joined
    if dist.is_initialized():
        if _present is None or _present.session.closed:
            raise FailedPreconditionError(
                "the default group must have backend gleaner before other groups can: init_process_group('gleaner')"
            )
        return _present
    session = _open(store, rank, size)
    _present = Job(session, store, _times_joined)
    _times_joined += 1
    return _present


def leave(failed: bool = False) -> None:
    """Closes the session if this module has opened it with a coordinator of its own. Collective.

    Args:
        failed: Leaves in error, without waiting for requests in flight or for other ranks.
    """
    global _own, _present
    if _own is not None and not _present.session.inherited:
        own, _own, _present = _own, None, None
        try:
            process.shutdown(failed)
        except GleanerError as error:  # every result that the program has waited for is right all the same
            print(f"gleaner: this rank left the job after an error: {error}", file=sys.stderr, flush=True)
        finally:
            own.forget()


def _open(store: Any, rank: int, size: int) -> Session:
    global _own
    if not process.is_initialized():
        if os.environ.get("GLEANER_COORDINATOR"):
            process.init()
        else:
            _own = _OwnCoordinator(store, rank, size)
            process.init(**_own.options)
            util.Finalize(None, leave, exitpriority=0)  # children of multiprocessing do not run atexit's functions
    session = process.current()
    info = session.rank_info
    if info.local_size > 1:
        raise FailedPreconditionError(
            f"backend gleaner needs one worker for each rank, and the workers of this job have {info.local_size} local "
            f"ranks each: start the job with --workers {info.size} and without --local-ranks"
        )
    if (info.rank, info.size) != (rank, size):
        raise FailedPreconditionError(
            f"this process has rank {info.rank} of {info.size} in the Gleaner job, and rank {rank} of {size} in "
            "torch.distributed: use one launcher, `gleaner run` or torchrun, and its RANK and WORLD_SIZE"
        )
    return session


class _OwnCoordinator:
    """The coordinator of a job without one: rank 0 runs it, and all ranks learn of it from the store.

    The store carries the port. Each rank takes the host from its own MASTER_ADDR, by which it reaches rank 0. The token
    is in a file without a name, which ends with the process.

    Attributes:
        options: Arguments of Session.
    """

    def __init__(self, store: Any, rank: int, size: int) -> None:
        key = f"gleaner/coordinator/{_times_joined}"  # the store may be that of an earlier default group
        if rank == 0:
            token = secrets.token_hex(32)
            self._file = _hidden_file("token", token)
            try:
                port = _start(_path(self._file), size)
            except GleanerError as error:
                store.set(key, f"error {error}")
                raise
            store.set(key, f"{port} {token}")
        else:
            port, token = store.get(key).decode().split(" ", 1)
            if port == "error":
                raise UnavailableError(f"rank 0 could not start a coordinator: {token}")
            self._file = _hidden_file("token", token)
        self.options = {
            "coordinator": f"{_host_of_rank_0()}:{port}",
            "worker": rank,
            "local_rank": 0,
            "local_size": 1,
            "token_file": _path(self._file),
        }

    def forget(self) -> None:
        os.close(self._file)


def _hidden_file(name: str, text: str = "") -> int:
    """Returns the descriptor of a new file without a name, which only this user can read."""
    file = os.memfd_create(f"gleaner-{name}")
    os.fchmod(file, 0o600)
    os.pwrite(file, text.encode(), 0)
    return file


def _path(file: int) -> str:
    return f"/proc/{os.getpid()}/fd/{file}"


def _start(token_file: str, workers: int) -> str:
    """Starts a coordinator for this many workers and returns its port.

    It runs on after this process, until the job has ended, since other ranks may leave later.
    """
    command = [str(_programs.find("gleaner")), "coordinator", "--workers", str(workers), "--log-level", "warning"]
    command += ["--listen", f"{_host_to_listen(workers)}:0", "--token-file", token_file]
    output = _hidden_file("coordinator")  # ranks report the job's errors, so nobody needs to read this later
    files = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, _path(output), os.O_WRONLY | os.O_APPEND, 0),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    try:
        child = os.posix_spawn(command[0], command, os.environ, file_actions=files, setsid=True)
        while True:
            written = os.pread(output, 1 << 16, 0).decode(errors="replace")
            found = re.search(r"listening on \S+:(\d+)\n", written)
            if found is not None:
                return found[1]
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
                raise UnavailableError(f"`{' '.join(command)}` ended with status {code}: {written}")
            time.sleep(0.005)
    finally:
        os.close(output)


def _host_of_rank_0() -> str:
    """Returns the address of MASTER_ADDR, as a part of HOST:PORT."""
    name = os.environ.get("MASTER_ADDR", "127.0.0.1")
    try:
        family, _, _, _, address = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise UnavailableError(f"MASTER_ADDR {name!r} has no address: {error}") from None
    return f"[{address[0]}]" if family == socket.AF_INET6 else address[0]


def _host_to_listen(workers: int) -> str:
    """Returns where rank 0 listens: at MASTER_ADDR, or everywhere if ranks of other machines can't know it as that."""
    host = _host_of_rank_0()
    is_alone = int(os.environ.get("LOCAL_WORLD_SIZE", workers)) >= workers
    return host if is_alone or not host.startswith(("127.", "[::1]")) else "0.0.0.0"
