"""The rank's session of the C ABI (gln_session in gleaner.h) as a Python object: one rank's membership in a job.

A request is one push_pull of a tensor by one rank, from its start until synchronize(). Memory is given by address; the
`result` function of a request keeps its memory alive. gleaner (numpy) and gleaner.torch wrap a session for arrays and
tensors.

Threads: all methods may be called from any thread. close() waits for calls of other threads. Ctrl-C interrupts calls
that block; the session, or the thread that closes it, then keeps the memory that C still uses. In a forked child all
calls raise FailedPreconditionError: the child can neither use the session nor open another one.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import numbers
import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Callable, Optional, Protocol, TypeVar

from gleaner import _abi
from gleaner._abi import DataType, Op
from gleaner.errors import FailedPreconditionError, GleanerError, InvalidArgumentError, error_of
from gleaner.interruptible import SLICE_SECONDS, InterruptibleCall

# The largest buffer for the text of gln_get_tensor_plan(); a plan has at most some million partitions.
_MOST_PLAN_BYTES = 1 << 28
# How long close() waits for the calls of other threads.
_CALL_SECONDS = 5.0


class Closable(Protocol):
    def close(self) -> None: ...


C = TypeVar("C", bound=Closable)


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


@dataclass(frozen=True)
class Stats:
    """Communication statistics of this rank since its session was opened. The values may be up to 250 ms old.

    Attributes:
        steps: Number of training steps: the calls of step(), or, if there are none, the requests of the tensor that had
            the most.
        bytes: Bytes of the tensors whose sums this rank has received.
        communication_seconds: Wall time with at least one request in flight, in seconds.
        bound_seconds: Best possible communication time of a step under the plan, in seconds; 0 if bandwidths are
            unknown, if schedules sum tensors (the coordinator's figures have their bound), or before the first step.
        epoch: Version of the plan in force.
    """

    steps: int
    bytes: int
    communication_seconds: float
    bound_seconds: float
    epoch: int


class Session:
    """Wraps one gln_session of the C ABI (gleaner.h). As a context manager, it closes the session at the end.

    The C++ class of the same name in comm-lib/session is another thing: the protocol core inside a gln_session.

    The constructor joins the job. It is collective and blocks until all members have joined. Arguments that are None
    come from environment variables (docs/cli.md#environment), then from defaults.

    Attributes:
        rank_info: The numbers of this rank, and of the job.
        topology: The earlier name of `rank_info`.

    Args:
        coordinator: HOST:PORT of the coordinator.
        job: Name of the job.
        worker: Index of this worker, from 0.
        local_rank: Index of this rank within its worker, from 0.
        local_size: Number of ranks of each worker.
        address: HOST:PORT on which the summer of this worker listens.
        token_file: Path of the file with the job's token.
        open_timeout: Seconds within which all members must join; 0: the environment's or the default value.

    Raises:
        TypeError: `open_timeout` is not a number.
        InvalidArgumentError: An argument or an environment variable is missing or wrong.
        UnavailableError: The coordinator cannot be reached, the job has failed, or members have not joined within the
            coordinator's --start-timeout or this rank's `open_timeout`; the coordinator's message names them.
        DeadlineExceededError: The session has not opened 5 seconds after `open_timeout`.
        PermissionDeniedError: The token is not the token of the job.
        WorkersChanged: A worker of an elastic job was lost before its round began; the caller may try again.
        FailedPreconditionError: This process was forked from a process that had opened a session.
        GleanerError: libgleaner.so cannot be loaded.
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
        # By handle, or by `starting`: name, result and the GPU's memory.
        self._results: dict[object, tuple[str, Callable[[], Any], Optional[GpuMemory]]] = {}
        self._tensors: dict[str, int] = {}  # ids of declared tensors, by name
        self._names_in_flight: set[str] = set()
        self._unnamed_by: Optional[threading.Thread] = None  # the thread that starts requests without a name
        self._registered: dict[int, Any] = {}  # the objects that own registered memory, by address
        self._attached: dict[Callable[[Session], Any], Any] = {}
        self._callers = 0  # threads that are in calls of the library
        self._left = threading.Condition()
        self._attaching = threading.Lock()
        _check_timeout(open_timeout)
        texts = (coordinator, job, worker, local_rank, local_size, address, token_file)
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

    def attached(self, kind: Callable[[Session], C]) -> C:
        """Returns the session's object of this kind.

        The first call creates the object as kind(session); close() closes it before the session.

        Args:
            kind: A class or function whose only argument is the session. It must not call attached().
        """
        with self._attaching:
            if kind not in self._attached:
                self._attached[kind] = kind(self)
            return self._attached[kind]

    def declare(
        self,
        name: str,
        elements: int,
        data_type: DataType,
        priority: int = 0,
        members: Optional[Sequence[int]] = None,
    ) -> int:
        """Declares a tensor and returns its id on this rank. Does not block; may be called from several threads.

        Every rank must declare the tensor with the same number of elements and the same type, in any order. If ranks
        differ, the session ends with an InvalidArgumentError at the first request. A repeated call with the same
        arguments returns the same id.

        Args:
            name: 1 to 4096 bytes of UTF-8 without control characters.
            elements: Number of elements. All elements together have at most 1 TiB.
            data_type: Type of the elements.
            priority: Tensors with lower values are sent first; -2**31 to 2**31 - 1. All ranks use the value of rank 0.
            members: Ranks in ascending order, this rank among them, which sum the tensor; no other rank declares it.
                None: all ranks.

        Raises:
            InvalidArgumentError: An argument is out of range, or this rank has declared `name` differently.
            FailedPreconditionError: The session is closed or inherited, or there are `members` and workers have
                several local ranks.
        """
        tensor = ctypes.c_uint32()
        arguments = (_encoded(name), elements, int(data_type), _int32(priority))
        if members is None:
            self._call("gln_declare", self._open(), *arguments, ctypes.byref(tensor))
        else:
            ranks = (ctypes.c_uint32 * len(members))(*members)
            self._call("gln_declare_for_members", self._open(), *arguments, ranks, len(members), ctypes.byref(tensor))
        self._tensors[name] = tensor.value
        return tensor.value

    def declare_accumulated(
        self, name: str, elements: int, data_type: DataType, priority: int = 0, staleness: Optional[int] = None
    ) -> int:
        """Declares a tensor whose requests, with Op.ACCUMULATE, add to a running sum that starts from zero.

        Returns its id on this rank. Local ranks of one worker wait for each other in each request.

        Args:
            name: As in declare().
            elements: As in declare().
            data_type: FLOAT32 or INT32.
            priority: As in declare().
            staleness: A request waits while another worker is more than this many requests of this tensor behind; the
                same on all ranks. None: a request waits for no other worker.

        Raises:
            InvalidArgumentError: As in declare(), or `staleness` is negative.
            FailedPreconditionError: The session is closed or inherited.
        """
        if staleness is not None and not 0 <= staleness < _abi.UNBOUNDED:
            raise InvalidArgumentError(f"staleness must be None or a number of steps from 0 on, not {staleness}")
        tensor = ctypes.c_uint32()
        behind = _abi.UNBOUNDED if staleness is None else staleness
        arguments = (_encoded(name), elements, int(data_type), _int32(priority), behind, ctypes.byref(tensor))
        self._call("gln_declare_accumulated", self._open(), *arguments)
        self._tensors[name] = tensor.value
        return tensor.value

    def push_pull_async(
        self,
        tensor: int,
        input_address: int,
        output_address: int,
        op: Op,
        name: str,
        result: Callable[[], Any],
        gpu: Optional[GpuMemory] = None,
    ) -> int:
        """Starts a request and returns a handle for synchronize(). Collective: every rank starts the same requests.

        One request per tensor may be in flight.

        Args:
            tensor: Id from declare() or declare_accumulated().
            input_address: Address of the elements to contribute; they must not change until synchronize().
            output_address: Address for the result; may equal `input_address`.
            op: Operation; the same on all ranks. ACCUMULATE if the tensor is from declare_accumulated(), and only then.
            name: Name of the tensor.
            result: Function that returns the result of synchronize(). The function object must own the memory at both
                addresses; the session keeps the object until the handle is synchronized.
            gpu: The GPU that has the memory at both addresses; None: the host. The request waits for what the calling
                thread has queued on its stream of the GPU.

        Raises:
            InvalidArgumentError: `tensor` is not declared, `op` is not possible for it, or the memory is not where
                `gpu` says.
            FailedPreconditionError: A request of this tensor is in flight, a CUDA graph is captured on the stream, or
                the session is closed or inherited.
            GleanerError: The session has failed; see gleaner.errors.
        """
        handle, starting = ctypes.c_uint64(), object()
        pointer = self._open()
        where = None if gpu is None else (gpu.ordinal, gpu.stream())  # the framework may raise errors of any kind
        # Keep the memory before C gets it: an interrupt may come at any moment, also before there is a handle.
        self._results[starting] = (name, result, gpu)
        arguments = (pointer, tensor, input_address, output_address, int(op))
        try:
            if where is None:
                self._call("gln_push_pull", *arguments, ctypes.byref(handle))
            else:
                self._call("gln_push_pull_on_stream", *arguments, *where, ctypes.byref(handle))
        except GleanerError:
            del self._results[starting]
            raise
        self._results[handle.value] = self._results[starting]
        del self._results[starting]
        self._names_in_flight.add(name)
        return handle.value

    def add_group(self, number: int, members: Sequence[int]) -> None:
        """Makes a group of ranks, in which member i has rank i. All members must make it, with the same arguments.

        Args:
            number: Number of the group, 0 to 2**31 - 1; no other group of this session has it.
            members: Ranks of the job.

        Raises:
            InvalidArgumentError: A rank is named twice or does not exist, this rank is no member, or the group exists.
            FailedPreconditionError: Workers have several local ranks, or the session is closed or inherited.
        """
        self._call("gln_add_group", self._open(), number, (ctypes.c_uint32 * len(members))(*members), len(members))

    def remove_group(self, number: int) -> None:
        """Removes a group, and frees its memory. Each member does so for itself; no other group can have its number.

        Args:
            number: Number of the group.

        Raises:
            InvalidArgumentError: There is no such group.
            FailedPreconditionError: A call of this rank is in flight, or the session is closed or inherited.
        """
        self._call("gln_remove_group", self._open(), number)

    def has_arrived(self, group: int) -> bool:
        """Returns whether bytes of another rank have come for this rank's next call of a group.

        Args:
            group: Number of the group.

        Raises:
            FailedPreconditionError: The session is closed or inherited.
            GleanerError: The session has failed; see gleaner.errors.
        """
        arrived = ctypes.c_int()
        self._call("gln_has_arrived", self._open(), group, ctypes.byref(arrived))
        return bool(arrived.value)

    def start_call(self, call: _abi.Call, name: str, memory: object) -> int:
        """Starts a call of a group's collective (gln_start_call()), and returns a handle for synchronize().

        Args:
            call: The call. Input and output must stay as they are until the call is done.
            name: Name of the call in errors.
            memory: Owns input and output; the session keeps it until the handle is synchronized.

        Raises:
            InvalidArgumentError: Sizes or pointers are wrong.
            FailedPreconditionError: The session is closed or inherited.
            GleanerError: The session has failed; see gleaner.errors.
        """
        handle, starting = ctypes.c_uint64(), object()
        pointer = self._open()
        self._results[starting] = (name, lambda: memory, None)  # before C gets it, as in push_pull_async()
        try:
            self._call("gln_start_call", pointer, ctypes.byref(call), ctypes.byref(handle))
        except GleanerError:
            del self._results[starting]
            raise
        self._results[handle.value] = self._results.pop(starting)
        return handle.value

    def register_memory(self, address: int, size: int, owner: Any) -> None:
        """Registers `size` bytes at `address`, so that RDMA sends inputs from there without a copy.

        Args:
            address: Address of the first byte.
            size: Number of bytes.
            owner: The object that owns the memory. The session keeps it until unregister_memory(address) or close().

        Raises:
            InvalidArgumentError: `size` is 0, or a part of the memory is registered already.
            FailedPreconditionError: The session is closed or inherited.
        """
        pointer = self._open()
        if address in self._registered:
            raise InvalidArgumentError(f"memory at {address:#x} is registered already; unregister it first")
        self._registered[address] = owner  # before C gets the memory, because an interrupt may come at any moment
        try:
            self._call("gln_register_memory", pointer, address, size)
        except GleanerError:
            del self._registered[address]
            raise

    def unregister_memory(self, address: int) -> None:
        """Unregisters the memory that was registered with this address.

        If requests still use the memory, this waits for up to 2 seconds.

        Args:
            address: Address that was passed to register_memory().

        Raises:
            InvalidArgumentError: No memory is registered with this address.
            FailedPreconditionError: Requests that use the memory are in flight, or the session is closed or inherited.
        """
        self._call("gln_unregister_memory", self._open(), address)
        self._registered.pop(address, None)

    def poll(self, handle: int) -> bool:
        """Returns whether synchronize(handle) would not block.

        Args:
            handle: Handle from push_pull_async().

        Raises:
            TypeError: `handle` is not a handle.
            InvalidArgumentError: The handle is unknown, or was synchronized before.
            FailedPreconditionError: The session is closed or inherited.
        """
        done = ctypes.c_int()
        self._call("gln_poll", self._open(), _handle(handle), ctypes.byref(done))
        return bool(done.value)

    def synchronize(self, handle: int, timeout: Optional[float] = None) -> Any:
        """Waits for a request and returns its result. Call it once for each handle.

        If the memory is on a GPU, this does not wait until the result has been copied there: what the calling thread
        queues next on its stream comes after that copy.

        Args:
            handle: Handle from push_pull_async().
            timeout: Seconds to wait at most; None: no limit.

        Raises:
            TypeError: `handle` is not a handle.
            DeadlineExceededError: `timeout` has passed. The handle stays valid.
            FailedPreconditionError: A CUDA graph is captured on the calling thread's stream. The handle stays valid.
            InvalidArgumentError: The handle is unknown, or was synchronized before.
            GleanerError: The request has failed; see gleaner.errors.
        """
        _handle(handle)
        gpu = self._results.get(handle, (None, None, None))[2]

        def wait(seconds: float) -> int:
            if gpu is None:
                return self._library.gln_wait(self._open(), handle, seconds)
            return self._library.gln_wait_on_stream(self._open(), handle, seconds, gpu.stream())

        status, message = self._in_slices(wait, timeout)
        if status == _abi.DEADLINE_EXCEEDED:
            raise error_of(status, message)
        if gpu is not None and status != _abi.OK and self._is_known(handle):
            raise error_of(status, message)
        # The request is over for C. If waited() raises an error, the session keeps the memory, which copies may use.
        name, result, _ = self._results.get(handle, ("", lambda: None, None))
        self._names_in_flight.discard(name)
        if gpu is not None:
            try:
                gpu.waited()
            except Exception as error:
                if status != _abi.OK:
                    raise error_of(status, message) from error
                raise
        self._results.pop(handle, None)
        self._check(status, message)
        return result()

    def _is_known(self, handle: int) -> bool:
        """Returns whether the handle was not synchronized, as when the calling thread's stream can't wait for it."""
        return (
            self._pointer is not None
            and self._library.gln_poll(self._pointer, handle, ctypes.byref(ctypes.c_int())) == 0
        )

    def next_done(self, timeout: float) -> Optional[int]:
        """Waits until a request is done and returns its handle; None if none is done within `timeout` seconds.

        Returns each handle once, and does not synchronize it.

        Args:
            timeout: Seconds to wait at most.

        Raises:
            FailedPreconditionError: The session is closed or inherited.
            GleanerError: The session has failed; see gleaner.errors.
        """
        handle = ctypes.c_uint64()
        with self._calling():
            status = self._library.gln_next_done(self._open(), timeout, ctypes.byref(handle))
            message = self._last_error(status)
        if status == _abi.DEADLINE_EXCEEDED:
            return None
        self._check(status, message)
        return handle.value

    def broadcast(self, name: str, address: int, size: int, root: int) -> None:
        """Copies `size` bytes at `address` from rank `root` to all ranks, bit for bit. Collective; blocks.

        As in gln_broadcast(), this is a sum of int32 to which all ranks except the root add zeros, so all bits survive.
        One int32 per rank follows the value. Each rank puts its `root` there, so that all ranks detect a difference.

        Args:
            name: Name of the broadcast, the same on all ranks. One broadcast per name may run at a time.
            address: Address of the bytes, which are overwritten on all ranks except the root.
            size: Number of bytes; the same on all ranks.
            root: Rank whose bytes are copied; the same on all ranks.

        Raises:
            InvalidArgumentError: `root` is not a rank (only this rank raises this), or ranks pass different roots (all
                ranks raise this).
            GleanerError: The session is closed or has failed; see gleaner.errors.
        """
        rank, ranks = self.rank_info.rank, self.rank_info.size
        if not 0 <= root < ranks:
            raise InvalidArgumentError(f"root {root} is not a rank; there are {ranks}")
        words = -(-size // 4)
        # After an interrupt C still uses the memory, so this must not be the caller's memory.
        memory = (ctypes.c_int32 * (words + ranks))()
        if rank == root:
            ctypes.memmove(memory, address, size)
        memory[words + rank] = root
        tensor_name = f"broadcast/{name}"
        tensor, here = self.declare(tensor_name, words + ranks, DataType.INT32), ctypes.addressof(memory)
        self.synchronize(self.push_pull_async(tensor, here, here, Op.SUM, tensor_name, lambda: memory))
        for other, asked in enumerate(memory[words:]):
            if asked != root:
                raise InvalidArgumentError(
                    f"broadcast of '{name}': rank {rank} passes root {root}, but rank {other} passes root {asked}; "
                    "every rank must pass the same root"
                )
        ctypes.memmove(address, memory, size)

    def step(self) -> None:
        """Counts a step of training in the statistics. Optional.

        Raises:
            FailedPreconditionError: The session is closed or inherited.
        """
        self._call("gln_step", self._open())

    def add_wait(self, seconds: float) -> None:
        """Counts time that the program has waited for requests other than in synchronize(), for the worker's metrics.

        Args:
            seconds: The time, 0 or more.

        Raises:
            InvalidArgumentError: `seconds` is negative or not finite.
            FailedPreconditionError: The session is closed or inherited.
        """
        self._call("gln_add_wait", self._open(), seconds)

    def stats(self) -> Stats:
        """Returns the communication statistics of this rank since its session was opened.

        Raises:
            FailedPreconditionError: The session is closed or inherited.
        """
        raw = _abi.Stats(ctypes.sizeof(_abi.Stats))
        self._call("gln_get_stats", self._open(), ctypes.byref(raw))
        return Stats(raw.steps, raw.bytes, raw.communication_seconds, raw.bound_seconds, raw.epoch)

    def transports(self) -> str:
        """Returns the transport to each summer, such as "inproc: worker/0; shm: worker/1; tcp: summer/0".

        The text is empty on local ranks above 0, and ends after 4095 bytes.

        Raises:
            FailedPreconditionError: The session is closed or inherited.
        """
        text = ctypes.create_string_buffer(4096)
        self._call("gln_get_transports", self._open(), text, len(text))
        return text.value.decode()

    def tensor_plan(self, name: str) -> dict[str, Any]:
        """Returns how the job sums a tensor: the JSON of gln_get_tensor_plan() as a dict.

        Args:
            name: Name that was passed to declare() or declare_accumulated().

        Raises:
            TypeError: The name is not a str.
            InvalidArgumentError: This rank has declared no tensor of this name.
            FailedPreconditionError: No plan has the tensor yet, or the session is closed or inherited.
        """
        _encoded(name)
        pointer = self._open()
        if name not in self._tensors:
            raise InvalidArgumentError(f"this rank has declared no tensor {name!r}; its first push_pull declares it")
        size = 1024
        while True:
            text = ctypes.create_string_buffer(size)
            status = self._library.gln_get_tensor_plan(pointer, self._tensors[name], text, size)
            # The tensor exists, so its text is too long for the buffer. A partition takes about 10 bytes of it.
            if status != _abi.INVALID_ARGUMENT or size >= _MOST_PLAN_BYTES:
                self._check(status, self._last_error(status))
                return json.loads(text.value)
            size *= 16

    def newcomers(self) -> int:
        """Returns how many workers wait for the next round of an elastic job.

        Ranks may learn of these workers at different times.

        Raises:
            FailedPreconditionError: The session is closed or inherited.
        """
        workers = ctypes.c_uint32()
        self._call("gln_get_newcomers", self._open(), ctypes.byref(workers))
        return workers.value

    def in_flight(self, name: str) -> bool:
        """Returns whether a request of this name was started on this rank and not yet synchronized.

        Args:
            name: Name that was passed to push_pull_async().
        """
        return name in self._names_in_flight

    def unused_name(self, prefix: str) -> str:
        """Returns the first of prefix.0, prefix.1, … that is not in flight.

        The name is the same on all ranks that run the same program. synchronize() frees the name of its request, so
        there are only as many names as unnamed requests in flight at one time.

        Args:
            prefix: Beginning of the name; the same on all ranks.

        Raises:
            FailedPreconditionError: Another thread has called this method and is alive. The order of the calls of two
                threads may differ between ranks, so ranks would give one name to different tensors.
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

    @property
    def topology(self) -> RankInfo:
        return self.rank_info

    def _read_rank_info(self) -> RankInfo:
        raw = _abi.RankInfo(ctypes.sizeof(_abi.RankInfo))
        self._call("gln_get_rank_info", self._open(), ctypes.byref(raw))
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

    def _call(self, function: str, *arguments: Any) -> None:
        with self._calling():
            status = getattr(self._library, function)(*arguments)
            message = self._last_error(status)
        self._check(status, message)

    @contextlib.contextmanager
    def _calling(self) -> Iterator[None]:
        """Keeps close() from freeing the session while this thread is in a call of the library, which must be short."""
        self._open()  # a forked child must not take the lock, which a thread of its parent may have held
        with self._left:
            self._open()
            self._callers += 1
        try:
            yield
        finally:
            with self._left:
                self._callers -= 1
                self._left.notify_all()

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


def _check_timeout(seconds: float) -> None:
    if not isinstance(seconds, numbers.Real):
        raise TypeError(f"open_timeout must be a number of seconds, not {seconds!r}")
    if not seconds >= 0:  # NaN included
        raise InvalidArgumentError(f"open_timeout must be a number of seconds from 0 on, not {seconds}")


def _handle(handle: int) -> int:
    if not isinstance(handle, int):
        raise TypeError(f"expected a handle, which push_pull_async() returns, not {type(handle).__name__}")
    return handle


def _encoded(name: str) -> bytes:
    if not isinstance(name, str):
        raise TypeError(f"a tensor's name must be a str, not {name!r}")
    if "\0" in name:
        raise InvalidArgumentError(f"a tensor's name must not contain a NUL character, as {name!r} does")
    try:
        return name.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"a tensor's name must be UTF-8, which {name!r} is not: {error.reason}") from error


def _int32(priority: int) -> int:
    if not isinstance(priority, numbers.Integral):
        raise TypeError(f"priority must be a whole number, not {priority!r}")
    if not -(2**31) <= priority < 2**31:
        raise InvalidArgumentError(f"priority must be a number from -2**31 to 2**31 - 1, not {priority}")
    return int(priority)


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


__all__ = ["DataType", "GleanerError", "GpuMemory", "Op", "RankInfo", "Session", "Stats"]
