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
import threading
from typing import Any, Callable, Optional

from gleaner import _abi
from gleaner._abi import DataType, Op
from gleaner.connection import GpuMemory, RankInfo
from gleaner.declarations import Declarations
from gleaner.errors import FailedPreconditionError, GleanerError, InvalidArgumentError, error_of
from gleaner.statistics import Statistics, Stats


class Session(Declarations, Statistics):
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
        self._names_in_flight: set[str] = set()
        self._unnamed_by: Optional[threading.Thread] = None  # the thread that starts requests without a name
        texts = (coordinator, job, worker, local_rank, local_size, address, token_file)
        super().__init__(texts, open_timeout)

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

    def transports(self) -> str:
        """Returns the transport to each summer, such as "inproc: worker/0; shm: worker/1; tcp: summer/0".

        The text is empty on local ranks above 0, and ends after 4095 bytes.

        Raises:
            FailedPreconditionError: The session is closed or inherited.
        """
        text = ctypes.create_string_buffer(4096)
        self.call("gln_get_transports", text, len(text))
        return text.value.decode()

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


__all__ = ["DataType", "GleanerError", "GpuMemory", "Op", "RankInfo", "Session", "Stats"]
