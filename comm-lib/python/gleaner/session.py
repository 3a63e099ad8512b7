"""The rank's session of the C ABI (gln_session in gleaner.h) as a Python object: one rank's membership in a job.

A request is one push_pull of a tensor by one rank, from its start until synchronize(). Memory is given by address; the
`result` function of a request keeps its memory alive. gleaner (numpy) and gleaner.torch wrap a session for arrays and
tensors.

Threads: all methods may be called from any thread. close() waits for calls of other threads. Ctrl-C interrupts calls
that block; the session, or the thread that closes it, then keeps the memory that C still uses. In a forked child all
calls raise FailedPreconditionError: the child can neither use the session nor open another one.
"""

from __future__ import annotations

import ctypes
import json
import numbers
import threading
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Callable, Optional

from gleaner import _abi
from gleaner._abi import DataType, Op
from gleaner.codec import Codec, SentAs
from gleaner.connection import Connection, GpuMemory, RankInfo
from gleaner.errors import FailedPreconditionError, GleanerError, InvalidArgumentError, error_of

# The largest buffer for the text of gln_get_tensor_plan(); a plan has at most some million partitions.
_MOST_PLAN_BYTES = 1 << 28


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
        compressed_elements: Elements of compressed tensors (`sent_as` of declare()) that were rounded. This and the
            next two are counted on local rank 0 of each worker, whose contributions are the sums of its local ranks.
        clipped_elements: Compressed elements that were finite, and infinite after the rounding.
        flushed_elements: Compressed elements that were not zero, and zero after the rounding.
    """

    steps: int
    bytes: int
    communication_seconds: float
    bound_seconds: float
    epoch: int
    compressed_elements: int
    clipped_elements: int
    flushed_elements: int


class Session(Connection):
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
        self._tensors: dict[str, int] = {}  # ids of declared tensors, by name
        self._names_in_flight: set[str] = set()
        self._unnamed_by: Optional[threading.Thread] = None  # the thread that starts requests without a name
        texts = (coordinator, job, worker, local_rank, local_size, address, token_file)
        super().__init__(texts, open_timeout)

    def declare(
        self,
        name: str,
        elements: int,
        data_type: DataType,
        priority: int = 0,
        members: Optional[Sequence[int]] = None,
        sent_as: Optional[SentAs] = None,
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
            sent_as: FLOAT16 or BFLOAT16: elements of FLOAT32 travel in this type, with half the bytes. Each worker's
                contribution is rounded once, and so is the result, whose sum is made in FLOAT32. A Codec: with fewer
                bytes. The same on all ranks. None: elements travel as they are.

        Raises:
            InvalidArgumentError: An argument is out of range, this rank has declared `name` differently, the type can't
                be sent as `sent_as`, or there are both `members` and `sent_as`.
            FailedPreconditionError: The session is closed or inherited, or there are `members` and workers have
                several local ranks.
        """
        tensor = ctypes.c_uint32()
        arguments = (_encoded(name), elements, int(data_type), _int32(priority))
        if sent_as is not None and members is not None:
            raise InvalidArgumentError(f"tensor '{name}' of members {list(members)} can't be compressed: omit sent_as")
        if sent_as is not None:
            self._declare_compressed(name, elements, data_type, priority, sent_as, tensor)
        elif members is None:
            self.call("gln_declare", *arguments, ctypes.byref(tensor))
        else:
            ranks = (ctypes.c_uint32 * len(members))(*members)
            self.call("gln_declare_for_members", *arguments, ranks, len(members), ctypes.byref(tensor))
        self._tensors[name] = tensor.value
        return tensor.value

    def _declare_compressed(
        self, name: str, elements: int, data_type: DataType, priority: int, sent_as: SentAs, tensor: ctypes.c_uint32
    ) -> None:
        if not isinstance(sent_as, Codec):
            shape = (_encoded(name), elements, int(data_type), int(sent_as), _int32(priority))
            return self.call("gln_declare_compressed", *shape, ctypes.byref(tensor))
        if data_type is not DataType.FLOAT32:
            raise InvalidArgumentError(f"tensor '{name}' of {data_type.name} can't be sent as {sent_as}: FLOAT32 can")
        size, feeds_back = ctypes.sizeof(_abi.Codec), int(sent_as.error_feedback)
        codec = _abi.Codec(size, sent_as.method, sent_as.kept, sent_as.seed, feeds_back, sent_as.momentum)
        shape = (_encoded(name), elements, ctypes.byref(codec), _int32(priority))
        self.call("gln_declare_encoded", *shape, ctypes.byref(tensor))

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
        self.call("gln_declare_accumulated", *arguments)
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
        self._open()
        where = () if gpu is None else (gpu.ordinal, gpu.stream())  # the framework may raise errors of any kind
        function = "gln_push_pull" if gpu is None else "gln_push_pull_on_stream"
        arguments = (tensor, input_address, output_address, int(op), *where)
        handle = self.start(function, arguments, name, result, gpu)
        self._names_in_flight.add(name)
        return handle

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
        self._open()
        if address in self._registered:
            raise InvalidArgumentError(f"memory at {address:#x} is registered already; unregister it first")
        self._registered[address] = owner  # before C gets the memory, because an interrupt may come at any moment
        try:
            self.call("gln_register_memory", address, size)
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
        self.call("gln_unregister_memory", address)
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
        self.call("gln_poll", _handle(handle), ctypes.byref(done))
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
        self.call("gln_step")

    def count_saved(self, bytes: int) -> None:
        """Counts bytes of gradients that the program does not send in the current step, as in sparse communication.

        Args:
            bytes: Their number, from 0 to 2**40.

        Raises:
            InvalidArgumentError: `bytes` is larger.
            FailedPreconditionError: The session is closed or inherited.
        """
        self.call("gln_count_saved", bytes)

    def add_wait(self, seconds: float) -> None:
        """Counts time that the program has waited for requests other than in synchronize(), for the worker's metrics.

        Args:
            seconds: The time, 0 or more.

        Raises:
            InvalidArgumentError: `seconds` is negative or not finite.
            FailedPreconditionError: The session is closed or inherited.
        """
        self.call("gln_add_wait", seconds)

    def tell_packs(self, fusion_bytes: float, seconds: float, seconds_without_packs: float) -> None:
        """Tells the coordinator which packs of gradients this rank has chosen; those of rank 0 count.

        Args:
            fusion_bytes: Gradients of at most this many bytes are in packs; math.inf: all are; 0: none is.
            seconds: Predicted time from the first gradient of a step to the end of the exchange.
            seconds_without_packs: The same with each gradient on its own.

        Raises:
            InvalidArgumentError: A number is negative or NaN, or a time is infinite.
            FailedPreconditionError: The session is closed or inherited.
        """
        self.call("gln_tell_packs", fusion_bytes, seconds, seconds_without_packs)

    def stats(self) -> Stats:
        """Returns the communication statistics of this rank since its session was opened.

        Raises:
            FailedPreconditionError: The session is closed or inherited.
        """
        raw = _abi.Stats(ctypes.sizeof(_abi.Stats))
        self.call("gln_get_stats", ctypes.byref(raw))
        return Stats(*(getattr(raw, field.name) for field in fields(Stats)))

    def transports(self) -> str:
        """Returns the transport to each summer, such as "inproc: worker/0; shm: worker/1; tcp: summer/0".

        The text is empty on local ranks above 0, and ends after 4095 bytes.

        Raises:
            FailedPreconditionError: The session is closed or inherited.
        """
        text = ctypes.create_string_buffer(4096)
        self.call("gln_get_transports", text, len(text))
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
        self.call("gln_get_newcomers", ctypes.byref(workers))
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


__all__ = ["DataType", "GleanerError", "GpuMemory", "Op", "RankInfo", "Session", "Stats"]
