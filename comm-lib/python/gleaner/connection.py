"""The connection of a rank to its job: a gln_session of the C ABI, from its opening to its end, and calls of it.

Session (gleaner.session) adds what a program does in a job. The threads are as there.
"""

from __future__ import annotations

import ctypes
import numbers
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Callable, Optional, Protocol, TypeVar

from gleaner import _abi
from gleaner.errors import FailedPreconditionError, GleanerError, InvalidArgumentError, error_of
from gleaner.interruptible import SLICE_SECONDS, InterruptibleCall

# How long close() waits for the calls of other threads.
_CALL_SECONDS = 5.0

Result = Callable[[], Any]


class Closable(Protocol):
    def close(self) -> None: ...


C = TypeVar("C", bound=Closable)
S = TypeVar("S", bound="Connection")


class GpuMemory(Protocol):
    """The memory of one request, which is on a GPU.

    Attributes:
        ordinal: CUDA ordinal of the GPU.
    """

    ordinal: int

    def stream(self) -> int:
        """Returns the stream on which the calling thread uses the memory: a cudaStream_t as a number."""

    def waited(self) -> None:
        """Notes that the calling thread's stream waits for the request, also if the request has failed."""


@dataclass(frozen=True)
class RankInfo:
    """The numbers of one rank, and of its job: rank = worker * local_size + local_rank; size = workers * local_size.

    Attributes:
        rank: Number of this rank, from 0.
        size: Number of ranks.
        worker: Number of this rank's worker, from 0.
        workers: Number of workers.
        local_rank: Number of this rank within its worker, from 0.
        local_size: Number of ranks of each worker.
        summers: Number of CPU summers in the plan when the session was opened.
    """

    rank: int
    size: int
    worker: int
    workers: int
    local_rank: int
    local_size: int
    summers: int


class Connection:
    """Wraps one gln_session. As a context manager, it closes the session at the end.

    Args:
        texts: The texts of gln_options in their order; None: from the environment.
        open_timeout: As in Session.

    Attributes:
        rank_info: The numbers of this rank, and of the job.

    Raises:
        GleanerError: As in Session.
    """

    def __init__(self, texts: Sequence[Optional[str]], open_timeout: float) -> None:
        self._library = _abi.load_library()
        self._pid = os.getpid()
        # By handle, or by the `starting` of start(): name, result and the GPU's memory.
        self._results: dict[object, tuple[str, Result, Optional[GpuMemory]]] = {}
        self._registered: dict[int, Any] = {}  # the objects that own registered memory, by address
        self._attached: dict[Callable[[Any], Any], Any] = {}
        self._callers = 0  # threads that are in calls of the library
        self._lock_of_callers = threading.RLock()  # a signal handler may make calls inside of one
        self._left = threading.Condition(self._lock_of_callers)
        self._attaching = threading.Lock()
        _check_timeout(open_timeout)
        options = _abi.Options(
            ctypes.sizeof(_abi.Options), *(None if text is None else str(text).encode() for text in texts), open_timeout
        )
        self._pointer: Optional[ctypes.c_void_p] = None
        opening = InterruptibleCall(
            lambda: _open_session(self._library, options), orphaned=lambda answer: _abandon(self._library, answer)
        )
        try:
            status, message, pointer = opening.wait()
            self._check(status, message)
            self._pointer = pointer
            self.rank_info = self._read_rank_info()
        except BaseException:  # KeyboardInterrupt, for example
            self._pointer = None
            opening.abandon()
            raise

    def __del__(self) -> None:
        # An interrupt may come after the session is open and before the caller has a reference to it.
        pointer = self.__dict__.get("_pointer")
        if pointer is not None and self._pid == os.getpid():
            self._library.gln_close(pointer, 1)

    def __enter__(self: S) -> S:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close(failed=kind is not None)

    def close(self, failed: bool = False, returning: bool = False) -> None:
        """Leaves the job and closes the session. Does nothing if the session is closed, or in a forked child.

        Args:
            failed: True: tells the job that this rank ended in error, does not wait for outstanding requests, and
                raises no errors of the session. False: waits for outstanding requests, up to the job's deadline, and
                until no other rank needs this rank's summer. If tensors accumulate, it also waits until all ranks close
                their sessions, without a time limit.
            returning: True: this process will join the next round of an elastic job; the round waits for this process.

        Raises:
            DeadlineExceededError: Requests are still in flight after the job's deadline.
            GleanerError: The session has failed before.
        """
        if self._pointer is None or self._pid != os.getpid():
            return
        for attached in self._attached.values():
            attached.close()
        status, message = InterruptibleCall(lambda: self._close(failed, returning)).wait()
        if not failed:
            self._check(status, message)

    def _close(self, failed: bool, returning: bool) -> tuple[int, str]:
        with self._left:
            pointer, self._pointer = self._pointer, None
            # Calls last for SLICE_SECONDS. A signal handler that closes the session may be inside of one.
            self._left.wait_for(lambda: self._callers == 0, timeout=_CALL_SECONDS)
        memory = self._results, self._registered  # C uses this memory until the session is closed
        self._results, self._registered = {}, {}
        leave = self._library.gln_close_to_return if returning else self._library.gln_close
        status = leave(pointer) if returning else leave(pointer, int(failed))
        answer = status, _last_error(self._library, status)
        for each in memory:
            each.clear()
        return answer

    @property
    def closed(self) -> bool:
        """Whether close() has been called."""
        return self._pointer is None

    @property
    def inherited(self) -> bool:
        """Whether this process was forked from the process that opened the session. The session is then unusable."""
        return self._pid != os.getpid()

    def attached(self, kind: Callable[[Any], C]) -> C:
        """Returns the session's object of this kind.

        The first call creates the object as kind(session); close() closes it before the session.

        Args:
            kind: A class or function whose only argument is the session. It must not call attached().
        """
        with self._attaching:
            if kind not in self._attached:
                self._attached[kind] = kind(self)
            return self._attached[kind]

    def _read_rank_info(self) -> RankInfo:
        raw = _abi.RankInfo(ctypes.sizeof(_abi.RankInfo))
        self.call("gln_get_rank_info", ctypes.byref(raw))
        return RankInfo(raw.rank, raw.ranks, raw.worker, raw.workers, raw.local_rank, raw.local_ranks, raw.summers)

    def _open(self) -> ctypes.c_void_p:
        if self._pointer is None:
            raise FailedPreconditionError("the session is closed; call gleaner.init() to join a job again")
        if self._pid != os.getpid():
            raise FailedPreconditionError(
                f"gleaner was initialised in process {self._pid}, from which this process was forked: communicate in "
                f"process {self._pid}. To make this process another rank, start it with multiprocessing's "
                "'spawn' or 'forkserver'"
            )
        return self._pointer

    def call(self, function: str, *arguments: Any) -> None:
        """Calls a function of the C ABI whose first argument is the session. The call must be short.

        Args:
            function: Name of the function.
            *arguments: Its further arguments.

        Raises:
            FailedPreconditionError: The session is closed or inherited.
            GleanerError: The error that the function returns.
        """
        with self._calling():
            status = getattr(self._library, function)(self._open(), *arguments)
            message = self._last_error(status)
        self._check(status, message)

    def start(
        self, function: str, arguments: Sequence[Any], name: str, result: Result, gpu: Optional[GpuMemory] = None
    ) -> int:
        """Starts a request by a function of the C ABI whose last argument is the request's handle.

        Args:
            function: Name of the function.
            arguments: Its arguments between the session and the handle.
            name: Name of the request.
            result: Function that returns the result of the request, and owns its memory; the session keeps it until the
                handle is synchronized.
            gpu: The GPU that has the memory; None: the host.

        Returns:
            The handle.

        Raises:
            FailedPreconditionError: The session is closed or inherited.
            GleanerError: The error that the function returns.
        """
        self._open()
        handle, starting = ctypes.c_uint64(), object()
        # Keep the memory before C gets it: an interrupt may come at any moment, also before there is a handle.
        self._results[starting] = (name, result, gpu)
        try:
            self.call(function, *arguments, ctypes.byref(handle))
        except GleanerError:
            del self._results[starting]
            raise
        self._results[handle.value] = self._results[starting]
        del self._results[starting]
        return handle.value

    def _calling(self) -> _Calling:
        """Keeps close() from freeing the session while this thread is in a call of the library, which must be short."""
        return _Calling(self)

    def _check(self, status: int, message: str) -> None:
        if status != _abi.OK:
            raise error_of(status, message)

    def _last_error(self, status: int) -> str:
        return _last_error(self._library, status)

    def _in_slices(self, call: Callable[[float], int], timeout: Optional[float]) -> tuple[int, str]:
        """Repeats a call that takes a timeout while it returns DEADLINE_EXCEEDED, for `timeout` seconds at most.

        Returns the last status and its message. Short calls let Python run signal handlers in between.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = SLICE_SECONDS if end is None else min(SLICE_SECONDS, max(0.0, end - time.monotonic()))
            with self._calling():
                status = call(left)
                message = self._last_error(status)
            if status != _abi.DEADLINE_EXCEEDED or (end is not None and time.monotonic() >= end):
                return status, message


class _Calling:
    """A call of the library by one thread. It is no generator, which would take longer than a short call."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        connection = self._connection
        connection._open()  # a forked child must not take the lock, which a thread of its parent may have held
        with connection._lock_of_callers:
            if connection._pointer is None:
                connection._open()
            connection._callers += 1

    def __exit__(self, *_: object) -> None:
        connection = self._connection
        with connection._lock_of_callers:
            connection._callers -= 1
            if connection._pointer is None:  # close() waits
                connection._left.notify_all()


def _check_timeout(seconds: float) -> None:
    if not isinstance(seconds, numbers.Real):
        raise TypeError(f"open_timeout must be a number of seconds, not {seconds!r}")
    if not seconds >= 0:  # NaN included
        raise InvalidArgumentError(f"open_timeout must be a number of seconds from 0 on, not {seconds}")


def _last_error(library: ctypes.CDLL, status: int) -> str:
    """Returns the library's message for this thread's last call, or an empty string if the call succeeded."""
    return "" if status == _abi.OK else library.gln_last_error().decode(errors="replace")


def _open_session(library: ctypes.CDLL, options: _abi.Options) -> tuple[int, str, ctypes.c_void_p]:
    pointer = ctypes.c_void_p()
    status = library.gln_open(ctypes.byref(options), ctypes.byref(pointer))
    return status, _last_error(library, status), pointer


def _abandon(library: ctypes.CDLL, opened: tuple[int, str, ctypes.c_void_p]) -> None:
    """Closes the session of an interrupted call of gln_open(), if the call has opened one."""
    status, _, pointer = opened
    if status == _abi.OK:
        library.gln_close(pointer, 1)
