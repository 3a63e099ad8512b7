"""How a process of torch.distributed joins its Gleaner job, and how groups get their numbers.

`gleaner run` and a TrainingJob tell the processes their coordinator. Without one, as under torchrun, rank 0 starts a
coordinator, and the store of torch.distributed carries its address and token to the other ranks. The coordinator ends
by itself after the last rank has left, and a lost rank ends it as in every job. It invites the summers that
GLEANER_SUMMERS of rank 0 names; `gleaner coordinator` reads that variable, and GLEANER_SUMMERS_TOKEN_FILE.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import socket
import sys
import threading
import time
from multiprocessing import util
from typing import Any, Optional

import torch.distributed as dist

from gleaner import _programs, process
from gleaner.errors import FailedPreconditionError, GleanerError, UnavailableError
from gleaner.session import Session
from gleaner.torch.distributed.futures import MOST_DEPTH

# Numbers of groups of one init_process_group(). A session has at most 2**31 numbers.
NUMBERS_OF_JOB = 1 << 20
# Numbers that one process group has: two for the collectives of the program, and of each depth of callbacks.
NUMBERS_OF_GROUP = 2 * (1 + MOST_DEPTH)


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
        self.first_number = generation * NUMBERS_OF_JOB

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
        if number + count > NUMBERS_OF_JOB:
            raise FailedPreconditionError(f"more than {NUMBERS_OF_JOB} groups and channels since init_process_group()")
        return self.first_number + number


def count_before(number: int) -> int:
    """Returns how many numbers groups and channels had taken before this one, since init_process_group()."""
    return number % NUMBERS_OF_JOB


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
    session = open_session(store, rank, size)
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
            own.report()
            process.shutdown(failed)
        except GleanerError as error:  # every result that the program has waited for is right all the same
            print(f"gleaner: this rank left the job after an error: {error}", file=sys.stderr, flush=True)
        finally:
            own.forget()


def restart(store: Any, rank: int, size: int, host: str, seconds: float) -> Job:
    """Leaves the job of this process, if it has one, and joins another one, for which rank 0 starts a coordinator.

    Args:
        store: A store, in which no job has left keys.
        rank: This rank in the new job.
        size: Number of its ranks.
        host: Address by which all ranks reach rank 0.
        seconds: Time within which all ranks must join.

    Raises:
        GleanerError: The job can't be joined; see gleaner.init().
    """
    global _own, _present
    if _own is not None:
        old, _own, _present = _own, None, None
        with contextlib.suppress(GleanerError):  # of a job that has failed
            process.shutdown()  # well, so that other ranks can end the calls that have ended here
        old.forget()
    own = _OwnCoordinator(store, rank, size, host)
    try:
        process.init(**own.options, open_timeout=seconds)
    except BaseException:
        own.forget()
        raise
    _own, _present = own, Job(process.current(), store, 0)
    util.Finalize(None, leave, exitpriority=0)  # as in open_session()
    return _present


def rejoin(store: Any) -> Job:
    """Joins the next round of an elastic job, or its first one, with the coordinator of the environment.

    Args:
        store: As in restart().

    Raises:
        GleanerError: The errors of gleaner.init().
    """
    global _present
    if process.is_initialized():
        process.rejoin()
    else:
        process.init()
    _present = Job(process.current(), store, 0)
    return _present


def has_coordinator() -> bool:
    """Returns whether a launcher of Gleaner has told this process a coordinator."""
    return bool(os.environ.get("GLEANER_COORDINATOR"))


def open_session(store: Any, rank: int, size: int) -> Session:
    """Opens the session of this process, if none is open, and returns it.

    Args:
        store: By which ranks learn of the coordinator of rank 0, if the environment names none.
        rank: This rank.
        size: Number of ranks.

    Raises:
        FailedPreconditionError: The open session has other ranks, or workers have several local ranks.
        GleanerError: As in gleaner.init().
    """
    global _own
    if not process.is_initialized():
        if has_coordinator():
            process.init()
        else:
            _own = _OwnCoordinator(store, rank, size)
            try:
                process.init(**_own.options)
            finally:
                _own.report()
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

    The store carries the port. Each rank takes the host from its own MASTER_ADDR or init_method, by which it reaches
    rank 0, unless it is told one. The token is in a file without a name, which ends with the process.

    Attributes:
        options: Arguments of Session.
    """

    def __init__(self, store: Any, rank: int, size: int, host: Optional[str] = None) -> None:
        key = f"gleaner/coordinator/{_times_joined}"  # the store may be that of an earlier default group
        name = _name_of_rank_0(store) if host is None else host.strip("[]")
        self._token = _hidden_file("token")
        self._output: Optional[_Output] = None
        if rank == 0:
            self._output = _Output()
            try:
                port = _start(_path(self._token), name, size, self._output)
            except GleanerError as error:
                store.set(key, f"error {error}")
                raise
            token = os.pread(self._token, 1 << 12, 0).decode().strip()  # which the coordinator has made
            store.set(key, f"{port} {_machine()} {token}")
        else:
            port, _, said = store.get(key).decode().partition(" ")
            if port == "error":
                raise UnavailableError(f"rank 0 could not start a coordinator: {said}")
            machine, token = said.split(" ")
            if name is None and machine != _machine():
                raise FailedPreconditionError(
                    "rank 0 is on another machine, and this rank does not know its address: set MASTER_ADDR on all "
                    "ranks to an address of the machine of rank 0"
                )
            os.pwrite(self._token, token.encode(), 0)
        self.options = {
            "coordinator": f"{_address(name)}:{port}",
            "worker": rank,
            "local_rank": 0,
            "local_size": 1,
            "token_file": _path(self._token),
        }

    def report(self) -> None:
        """Passes on what the coordinator has logged since the last call, for example summers that did not come."""
        if self._output is not None:
            for line in self._output.new_log_lines():
                print(line, file=sys.stderr, flush=True)

    def forget(self) -> None:
        os.close(self._token)
        if self._output is not None:
            self._output.close()


class _Output:
    """Output of the coordinator, in a file without a name: it may write after this process has ended.

    Attributes:
        path: Path of the file.
    """

    def __init__(self) -> None:
        self._file = _hidden_file("coordinator")
        self._reported = 0  # bytes
        self.path = _path(self._file)

    def text(self) -> str:
        return os.pread(self._file, 1 << 20, 0).decode(errors="replace")

    def new_log_lines(self) -> list[str]:
        """Returns the whole lines of the log since the last call."""
        new = os.pread(self._file, 1 << 20, self._reported)
        new = new[: new.rfind(b"\n") + 1]
        self._reported += len(new)
        return re.findall(r"^\S+ (?:warning|error) coordinator: .*$", new.decode(errors="replace"), re.MULTILINE)

    def close(self) -> None:
        os.close(self._file)


def _hidden_file(name: str) -> int:
    """Returns the descriptor of a new file without a name, which only this user can read."""
    file = os.memfd_create(f"gleaner-{name}")
    os.fchmod(file, 0o600)
    return file


def _path(file: int) -> str:
    return f"/proc/{os.getpid()}/fd/{file}"


def _start(token_file: str, name: Optional[str], workers: int, output: _Output) -> str:
    """Starts a coordinator for this many workers and returns its port. The coordinator makes the token.

    It runs on after this process, until the job has ended, since other ranks may leave later.
    """
    command = [str(_programs.find("gleaner")), "coordinator", "--workers", str(workers), "--log-level", "warning"]
    command += ["--listen", f"{_host_to_listen(name, workers)}:0", "--token-file", token_file]
    files = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, output.path, os.O_WRONLY | os.O_APPEND, 0),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    child = os.posix_spawn(command[0], command, os.environ, file_actions=files, setsid=True)
    while True:
        found = re.search(r"listening on \S+:(\d+)\n", output.text())
        if found is not None:
            threading.Thread(target=_reap, args=(child,), name="gleaner-coordinator", daemon=True).start()
            return found[1]
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            raise UnavailableError(f"`{' '.join(command)}` ended with status {code}: {output.text()}")
        time.sleep(0.005)


def _reap(child: int) -> None:
    """Waits until the coordinator ends, so that no zombie is left in a program that runs on."""
    with contextlib.suppress(ChildProcessError):  # the program itself may have waited for any child
        os.waitpid(child, 0)


def _machine() -> str:
    """Returns an id of the network namespace of this process, within which a loopback address leads to rank 0."""
    with open("/proc/sys/kernel/random/boot_id") as boot:
        return f"{boot.read().strip()}/{os.stat('/proc/self/ns/net').st_ino}"


def _name_of_rank_0(store: Any) -> Optional[str]:
    """Returns the host of MASTER_ADDR or, without it, of init_method tcp://. None: neither is given."""
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    return os.environ.get("MASTER_ADDR") or getattr(store, "host", None) or None


def host_of_rank_0() -> str:
    """Returns the address of MASTER_ADDR, as a part of HOST:PORT."""
    return _address(os.environ.get("MASTER_ADDR"))


def _address(name: Optional[str]) -> str:
    """Returns the address of rank 0, as a part of HOST:PORT."""
    try:
        family, _, _, _, address = socket.getaddrinfo(name or "127.0.0.1", None, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise UnavailableError(f"the host of rank 0, {name!r}, has no address: {error}") from None
    return f"[{address[0]}]" if family == socket.AF_INET6 else address[0]


def _host_to_listen(name: Optional[str], workers: int) -> str:
    """Returns where rank 0 listens: at its address, or everywhere if that leads others to their own machine.

    A machine's own name may stand for a loopback address on that machine, and for another address elsewhere.
    """
    address = _address(name)
    if not _is_loopback(address):
        return address
    is_alone = name is None or _is_loopback(name)
    if "LOCAL_WORLD_SIZE" in os.environ:
        is_alone = int(os.environ["LOCAL_WORLD_SIZE"]) >= workers
    summers = [summer.strip().rpartition(":")[0] for summer in os.environ.get("GLEANER_SUMMERS", "").split(",")]
    are_here = all(_is_loopback(host) for host in summers if host)
    everywhere = "[::]" if address.startswith("[") else "0.0.0.0"
    return address if is_alone and are_here else everywhere


def _is_loopback(host: str) -> bool:
    """Returns whether a host, as a part of HOST:PORT, is written as a loopback address or as localhost."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
