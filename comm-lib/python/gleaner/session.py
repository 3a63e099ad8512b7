"""A rank's membership in a job: the C session as a Python object.

Memory is given by address; the `result` closure that belongs to each push_pull keeps it alive. gleaner (numpy) and
gleaner.torch wrap this for arrays and tensors.

Threads: all methods may be called from any thread; close() must not overlap with another call. Blocking calls let
Ctrl-C through; memory that C still uses then stays with the session, or with the thread that closes it. After fork()
the child can use neither its parent's session nor one of its own, and is told so.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Callable, Optional, Protocol, TypeVar

from gleaner import _abi
from gleaner._abi import DataType, Op
from gleaner.aside import SLICE_SECONDS, Aside
from gleaner.errors import FailedPreconditionError, GleanerError, InvalidArgumentError, error_of


class Closable(Protocol):
    def close(self) -> None: ...


C = TypeVar("C", bound=Closable)


@dataclass(frozen=True)
class Topology:
    """Who we are. Rank = worker * local_size + local_rank; size = workers * local_size."""

    rank: int
    size: int
    worker: int
    workers: int
    local_rank: int
    local_size: int
    summers: int


@dataclass(frozen=True)
class Stats:
    """What was moved since init, up to a moment ago; seconds are wall time with at least one push_pull in flight."""

    steps: int
    bytes: int
    communication_seconds: float
    bound_seconds: float
    epoch: int


class Session:
    """One open session. Every argument left out comes from the environment (docs/cli.md), then a default.

    Opening blocks until all members of the job are there, at most open_timeout seconds.
    """

    def __init__(
        self,
        coordinator: Optional[str] = None,
        job: Optional[str] = None,
        worker: Optional[int] = None,
        local_rank: Optional[int] = None,
        local_size: Optional[int] = None,
        address: Optional[str] = None,
        token_file: Optional[str] = None,
        open_timeout: float = 0.0,
    ) -> None:
        self._library = _abi.load_library()
        self._pid = os.getpid()
        self._results: dict[object, tuple[str, Callable[[], Any]]] = {}  # by handle, once there is one
        self._names_in_flight: set[str] = set()
        self._unnamed_by: Optional[threading.Thread] = None  # who started push_pulls without a name
        self._registered: dict[int, Any] = {}  # owners of memory, by address
        self._attached: dict[Callable[[Session], Any], Any] = {}
        texts = (coordinator, job, worker, local_rank, local_size, address, token_file)
        options = _abi.Options(
            ctypes.sizeof(_abi.Options), *(None if text is None else str(text).encode() for text in texts), open_timeout
        )
        self._pointer: Optional[ctypes.c_void_p] = None
        opening = Aside(
            lambda: _open_session(self._library, options), orphaned=lambda answer: _abandon(self._library, answer)
        )
        try:
            status, message, pointer = opening.wait()
            self._check(status, message)
            self._pointer = pointer
            self.topology = self._read_topology()
        except BaseException:  # Ctrl-C, above all
            self._pointer = None
            opening.abandon()
            raise

    def __del__(self) -> None:
        # An interrupt may strike after the session was opened and before anything refers to it.
        pointer = self.__dict__.get("_pointer")
        if pointer is not None and self._pid == os.getpid():
            self._library.gln_close(pointer, 1)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close(failed=kind is not None)

    def close(self, failed: bool = False, returning: bool = False) -> None:
        """Leaves the job; waits for outstanding push_pulls unless `failed`. A second close does nothing.

        `failed` tells the job that this rank ended in error; then what close itself meets is no news, and not raised.
        `returning`: this process joins the next round of an elastic job, which waits for it.
        """
        if self._pointer is None or self._pid != os.getpid():
            return
        for attached in self._attached.values():
            attached.close()
        status, message = Aside(lambda: self._close(failed, returning)).wait()
        if not failed:
            self._check(status, message)

    def _close(self, failed: bool, returning: bool) -> tuple[int, str]:
        pointer, self._pointer = self._pointer, None
        memory = self._results, self._registered  # C uses it until it has closed
        self._results, self._registered = {}, {}
        leave = self._library.gln_close_to_return if returning else self._library.gln_close
        status = leave(pointer) if returning else leave(pointer, int(failed))
        answer = status, _last_error(self._library, status)
        for each in memory:
            each.clear()
        return answer

    @property
    def closed(self) -> bool:
        return self._pointer is None

    @property
    def inherited(self) -> bool:
        """It was opened by the process that this one was forked from, and is of no use here."""
        return self._pid != os.getpid()

    def attached(self, kind: Callable[[Session], C]) -> C:
        """The session's one kind(session), made at first use and closed before the session is."""
        if kind not in self._attached:
            self._attached[kind] = kind(self)
        return self._attached[kind]

    def declare(self, name: str, elements: int, data_type: DataType, priority: int = 0) -> int:
        """Names a tensor and returns its id. All ranks must declare it alike; lower priority values go first."""
        tensor = ctypes.c_uint32()
        arguments = (_encoded(name), elements, int(data_type), _int32(priority), ctypes.byref(tensor))
        self._call("gln_declare", self._open(), *arguments)
        return tensor.value

    def declare_accumulated(
        self, name: str, elements: int, data_type: DataType, priority: int = 0, staleness: Optional[int] = None
    ) -> int:
        """Names a tensor whose push_pulls, with Op.ACCUMULATE, add to a running sum and wait for no other worker.

        With a staleness they wait until no worker is more than so many push_pulls of this tensor behind.
        """
        if staleness is not None and not 0 <= staleness < _abi.UNBOUNDED:
            raise InvalidArgumentError(f"staleness must be None or a number of steps from 0 on, not {staleness}")
        tensor = ctypes.c_uint32()
        behind = _abi.UNBOUNDED if staleness is None else staleness
        arguments = (_encoded(name), elements, int(data_type), _int32(priority), behind, ctypes.byref(tensor))
        self._call("gln_declare_accumulated", self._open(), *arguments)
        return tensor.value

    def push_pull_async(
        self, tensor: int, input_address: int, output_address: int, op: Op, name: str, result: Callable[[], Any]
    ) -> int:
        """Starts a sum over all ranks of `tensor`, an id from declare(); returns a handle for synchronize().

        `result` must own the memory at both addresses: it is kept until the handle is synchronized, and then called
        to give what synchronize() returns.
        """
        handle, starting = ctypes.c_uint64(), object()
        pointer = self._open()
        self._results[starting] = (name, result)  # before C has the memory: an interrupt may strike in between
        try:
            self._call("gln_push_pull", pointer, tensor, input_address, output_address, int(op), ctypes.byref(handle))
        except GleanerError:
            del self._results[starting]
            raise
        self._results[handle.value] = self._results[starting]
        del self._results[starting]
        self._names_in_flight.add(name)
        return handle.value

    def register_memory(self, address: int, size: int, owner: Any) -> None:
        """Says that `size` bytes stay at `address`, so that RDMA needs no copy of inputs that lie there.

        `owner`, whose memory it is, is kept until unregister_memory(address) or close().
        """
        pointer = self._open()
        if address in self._registered:
            raise InvalidArgumentError(f"memory at {address:#x} is registered already; unregister it first")
        self._registered[address] = owner  # before C has the memory: an interrupt may strike in between
        try:
            self._call("gln_register_memory", pointer, address, size)
        except GleanerError:
            del self._registered[address]
            raise

    def unregister_memory(self, address: int) -> None:
        """FailedPreconditionError while push_pulls of it are in flight."""
        self._call("gln_unregister_memory", self._open(), address)
        self._registered.pop(address, None)

    def poll(self, handle: int) -> bool:
        """True when synchronize(handle) would not block."""
        done = ctypes.c_int()
        self._call("gln_poll", self._open(), handle, ctypes.byref(done))
        return bool(done.value)

    def synchronize(self, handle: int, timeout: Optional[float] = None) -> Any:
        """Waits for a push_pull and returns its result; each handle once. Raises what the push_pull failed with.

        DeadlineExceededError after `timeout` seconds; the handle then stays good.
        """
        status, message = self._in_slices(
            lambda seconds: self._library.gln_wait(self._open(), handle, seconds), timeout
        )
        if status == _abi.DEADLINE_EXCEEDED:
            raise error_of(status, message)
        name, result = self._results.pop(handle, ("", lambda: None))
        self._names_in_flight.discard(name)
        self._check(status, message)
        return result()

    def next_done(self, timeout: float) -> Optional[int]:
        """A handle that became done, each told once; None when none did within `timeout` seconds."""
        handle = ctypes.c_uint64()
        status = self._library.gln_next_done(self._open(), timeout, ctypes.byref(handle))
        if status == _abi.DEADLINE_EXCEEDED:
            return None
        self._check(status, self._last_error(status))
        return handle.value

    def broadcast(self, name: str, address: int, size: int, root: int) -> None:
        """Copies `size` bytes at `address` of rank `root` to all ranks, bit for bit. Blocks; name and size alike.

        As gln_broadcast(): bits survive a sum of int32 to which all ranks but one give zeros. Behind them each rank
        says which root it asks for, so that ranks that differ all hear of it.
        """
        rank, ranks = self.topology.rank, self.topology.size
        if not 0 <= root < ranks:
            raise InvalidArgumentError(f"root {root} is not a rank; there are {ranks}")
        words = -(-size // 4)
        memory = (ctypes.c_int32 * (words + ranks))()  # an interrupt leaves the caller's memory to the caller
        if rank == root:
            ctypes.memmove(memory, address, size)
        memory[words + rank] = root
        tensor_name = f"broadcast/{name}"
        tensor, here = self.declare(tensor_name, words + ranks, DataType.INT32), ctypes.addressof(memory)
        self.synchronize(self.push_pull_async(tensor, here, here, Op.SUM, tensor_name, lambda: memory))
        for other, asked in enumerate(memory[words:]):
            if asked != root:
                raise InvalidArgumentError(
                    f"broadcast of '{name}': rank {rank} asks for the value of rank {root}, rank {other} for that of "
                    f"rank {asked}; every rank must name the same root"
                )
        ctypes.memmove(address, memory, size)

    def step(self) -> None:
        """Tells the statistics that an iteration of training ended."""
        self._call("gln_step", self._open())

    def stats(self) -> Stats:
        raw = _abi.Stats(ctypes.sizeof(_abi.Stats))
        self._call("gln_get_stats", self._open(), ctypes.byref(raw))
        return Stats(raw.steps, raw.bytes, raw.communication_seconds, raw.bound_seconds, raw.epoch)

    def transports(self) -> str:
        """By what this worker reaches each summer: "inproc: worker/0; shm: worker/1; tcp: summer/0"."""
        text = ctypes.create_string_buffer(4096)
        self._call("gln_get_transports", self._open(), text, len(text))
        return text.value.decode()

    def newcomers(self) -> int:
        """Workers that wait for the next round of an elastic job; ranks may hear of them at different times."""
        workers = ctypes.c_uint32()
        self._call("gln_get_newcomers", self._open(), ctypes.byref(workers))
        return workers.value

    def in_flight(self, name: str) -> bool:
        """Whether a push_pull of this name was started here and not yet synchronized."""
        return name in self._names_in_flight

    def unused_name(self, prefix: str) -> str:
        """The first of prefix.0, prefix.1, … that is not in flight: the same on all ranks that run the same program.

        Names are free again after synchronize(), so their number stays that of unnamed push_pulls at one time. Several
        threads would ask in an order that differs from rank to rank: FailedPreconditionError.
        """
        thread = threading.current_thread()
        if self._unnamed_by is not thread and self._unnamed_by is not None and self._unnamed_by.is_alive():
            raise FailedPreconditionError(
                f"thread {self._unnamed_by.name} has started push_pulls without a name, and so thread {thread.name} "
                "must not: ranks would give the same name to different tensors; pass name=..."
            )
        self._unnamed_by = thread
        number = 0
        while f"{prefix}.{number}" in self._names_in_flight:
            number += 1
        return f"{prefix}.{number}"

    def _read_topology(self) -> Topology:
        raw = _abi.Topology(ctypes.sizeof(_abi.Topology))
        self._call("gln_get_topology", self._open(), ctypes.byref(raw))
        return Topology(raw.rank, raw.ranks, raw.worker, raw.workers, raw.local_rank, raw.local_ranks, raw.summers)

    def _open(self) -> ctypes.c_void_p:
        if self._pointer is None:
            raise FailedPreconditionError("the session is closed; call gleaner.init() to join a job again")
        if self._pid != os.getpid():
            raise FailedPreconditionError(
                f"gleaner was initialised in process {self._pid}, from which this one was forked: communicate there. "
                "A process that is a rank of its own must be started anew (multiprocessing's 'spawn' or 'forkserver')"
            )
        return self._pointer

    def _call(self, function: str, *arguments: Any) -> None:
        status = getattr(self._library, function)(*arguments)
        self._check(status, self._last_error(status))

    def _check(self, status: int, message: str) -> None:
        if status != _abi.OK:
            raise error_of(status, message)

    def _last_error(self, status: int) -> str:
        return _last_error(self._library, status)

    def _in_slices(self, call: Callable[[float], int], timeout: Optional[float]) -> tuple[int, str]:
        """Repeats a call that takes a timeout until it gives anything but DEADLINE_EXCEEDED or `timeout` is over."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = SLICE_SECONDS if end is None else min(SLICE_SECONDS, max(0.0, end - time.monotonic()))
            status = call(left)
            if status != _abi.DEADLINE_EXCEEDED or (end is not None and time.monotonic() >= end):
                return status, self._last_error(status)


def _encoded(name: str) -> bytes:
    if "\0" in name:
        raise InvalidArgumentError(f"a tensor's name must not contain a NUL character, as {name!r} does")
    return name.encode()


def _int32(priority: int) -> int:
    if not -(2**31) <= priority < 2**31:
        raise InvalidArgumentError(f"priority must be a number from -2**31 to 2**31 - 1, not {priority}")
    return priority


def _last_error(library: ctypes.CDLL, status: int) -> str:
    """The library's message for this thread's last call; empty when it went well."""
    return "" if status == _abi.OK else library.gln_last_error().decode(errors="replace")


def _open_session(library: ctypes.CDLL, options: _abi.Options) -> tuple[int, str, ctypes.c_void_p]:
    pointer = ctypes.c_void_p()
    status = library.gln_open(ctypes.byref(options), ctypes.byref(pointer))
    return status, _last_error(library, status), pointer


def _abandon(library: ctypes.CDLL, opened: tuple[int, str, ctypes.c_void_p]) -> None:
    """Closes what gln_open() gave after the caller was interrupted."""
    status, _, pointer = opened
    if status == _abi.OK:
        library.gln_close(pointer, 1)


__all__ = ["DataType", "GleanerError", "Op", "Session", "Stats", "Topology"]
