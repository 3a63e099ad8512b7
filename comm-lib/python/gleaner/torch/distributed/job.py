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
import tempfile
import time
from multiprocessing import util
from pathlib import Path
from typing import Any, Optional

import torch.distributed as dist

from gleaner import _programs, process
from gleaner.errors import FailedPreconditionError, GleanerError, UnavailableError
from gleaner.session import Session

# Numbers of groups of one init_process_group(). A session has at most 2**31 numbers.
_NUMBERS = 1 << 20


class Job:
    """The job of this process, from init_process_group() on.

    Attributes:
        session: The session of this rank.
        store: Store of the default group.
    """

    def __init__(self, session: Session, store: Any, first_number: int) -> None:
        self.session = session
        self.store = store
        self._first_number = first_number

    def numbers(self, store: Any, key: str, count: int) -> int:
        """Returns the first of `count` numbers that belong to `key` of `store`. All ranks that ask get the same.

        Whoever asks first takes the numbers; the others wait for its answer.
        """
        if store.add(f"gleaner/{key}/asked", 1) == 1:
            number = self.store.add("gleaner/numbers", count) - count
            store.set(f"gleaner/{key}/number", str(number))
        else:
            number = int(store.get(f"gleaner/{key}/number"))
        if number + count > _NUMBERS:
            raise FailedPreconditionError(f"more than {_NUMBERS} groups and channels since init_process_group()")
        return self._first_number + number


_present: Optional[Job] = None
_times_joined = 0
_own: Optional[_OwnCoordinator] = None


def join(store: Any, rank: int, size: int) -> Job:
    """Joins the job for the default group, or returns the job that this process has joined for it."""
    global _present, _times_joined
    if dist.is_initialized() and _present is not None:
        return _present
    session = _open(store, rank, size)
    if _present is None or _present.session is not session:
        _times_joined = 0
    _present = Job(session, store, _times_joined * _NUMBERS)
    _times_joined += 1
    return _present


def leave(failed: bool = False) -> None:
    """Closes the session if this module has opened it with a coordinator of its own. Collective.

    Args:
        failed: Leaves in error, without waiting for requests in flight or for other ranks.
    """
    global _own, _present
    if _own is not None:
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

    The store carries the port. Each rank takes the host from its own MASTER_ADDR, by which it reaches rank 0.

    Attributes:
        options: Arguments of Session.
    """

    def __init__(self, store: Any, rank: int, size: int) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="gleaner-")
        token_file = Path(self._folder.name) / "token"
        if rank == 0:
            try:
                port = _start(Path(self._folder.name), token_file, size)
            except GleanerError as error:
                store.set("gleaner/coordinator", f"error {error}")
                raise
            store.set("gleaner/coordinator", f"{port} {token_file.read_text()}")
        else:
            port, token = store.get("gleaner/coordinator").decode().split(" ", 1)
            if port == "error":
                raise UnavailableError(f"rank 0 could not start a coordinator: {token}")
            _write_secretly(token_file, token)
        self.options = {
            "coordinator": f"{_host_of_rank_0()}:{port}",
            "worker": rank,
            "local_rank": 0,
            "local_size": 1,
            "token_file": str(token_file),
        }

    def forget(self) -> None:
        self._folder.cleanup()


def _write_secretly(file: Path, text: str) -> None:
    file.touch(mode=0o600)
    file.write_text(text)


def _start(folder: Path, token_file: Path, workers: int) -> str:
    """Starts a coordinator for this many workers and returns its port.

    It runs on after this process, until the job has ended, since other ranks may leave later.
    """
    _write_secretly(token_file, secrets.token_hex(32))
    command = [str(_programs.find("gleaner")), "coordinator", "--workers", str(workers), "--log-level", "warning"]
    command += ["--listen", f"{_host_to_listen(workers)}:0", "--token-file", str(token_file)]
    output = folder / "coordinator"  # ranks report the job's errors, so nobody needs to read the coordinator's later
    output.touch(mode=0o600)
    files = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(output), os.O_WRONLY | os.O_APPEND, 0),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    child = os.posix_spawn(command[0], command, os.environ, file_actions=files, setsid=True)
    while True:
        found = re.search(r"listening on \S+:(\d+)\n", output.read_text())
        if found is not None:
            return found[1]
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            raise UnavailableError(
                f"`{' '.join(command)}` ended with status {os.waitstatus_to_exitcode(status)}: {output.read_text()}"
            )
        time.sleep(0.005)


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
