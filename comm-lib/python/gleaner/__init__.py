"""Gleaner for numpy: sums and averages arrays over all ranks of a job.

    import gleaner, numpy
    gleaner.init()                                  # reads job and rank from the environment, which `gleaner run` sets
    mean = gleaner.push_pull(numpy.ones(10, numpy.float32), name="ones")
    gleaner.shutdown()

Element types are float32, float64, float16, int32 and, where ml_dtypes is installed, bfloat16. Contributions are summed
in rank order, float16 and bfloat16 with float32 accumulation, so the result has the same bits on every rank and in
every run. gleaner.torch offers the same functions for PyTorch tensors. gleaner.errors lists the errors.

A request is one push_pull or accumulate of one rank, from its start until synchronize(). Every rank must start the same
requests. A request that has a name may be started and synchronized by any thread. Requests without a name must all be
started by one thread, on all ranks in the same order. At most one request per name may be in flight, and all requests
of one name must have the same size, type and priority. broadcast() and broadcast_object() may be called from one thread
at a time.
"""

from __future__ import annotations

from typing import Optional

import numpy

from gleaner import arrays, exchange, process
from gleaner.codec import Codec, Method
from gleaner.errors import (
    DeadlineExceededError,
    FailedPreconditionError,
    GleanerError,
    InternalError,
    InvalidArgumentError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnavailableError,
    WorkersChanged,
)
from gleaner.exchange import AccumulateOptions, PushPullOptions
from gleaner.process import (
    broadcast_object,
    init,
    is_initialized,
    local_rank,
    local_size,
    poll,
    rank,
    shutdown,
    size,
    stats,
    tensor_plan,
    transports,
)
from gleaner.session import DataType, Op, RankInfo, Session, Stats

__version__ = "0.1.0"


def push_pull(
    array: numpy.ndarray, average: bool = True, name: Optional[str] = None, priority: int = 0
) -> numpy.ndarray:
    """Returns the average or the sum of `array` over all ranks. Collective; blocks.

    Args:
        array: Array of float32, float64, float16, bfloat16 or int32 in native byte order, of any shape, with the same
            number of elements and the same type on all ranks.
        average: True: the average; False: the sum. The same on all ranks.
        name: Name of the tensor, as in push_pull_async().
        priority: As in push_pull_async().

    Returns:
        A new row-major array with the shape and type of `array`.

    Raises:
        TypeError: As in push_pull_async().
        GleanerError: As in push_pull_async() and synchronize().
    """
    return synchronize(push_pull_async(array, average, name, priority))


def push_pull_inplace(
    array: numpy.ndarray, average: bool = True, name: Optional[str] = None, priority: int = 0
) -> numpy.ndarray:
    """Overwrites `array` with its average or its sum over all ranks. Collective; blocks.

    Args:
        array: As in push_pull_async_inplace().
        average: As in push_pull_async().
        name: As in push_pull_async().
        priority: As in push_pull_async().

    Returns:
        `array` itself.

    Raises:
        TypeError: As in push_pull_async_inplace().
        GleanerError: As in push_pull_async() and synchronize().
    """
    return synchronize(push_pull_async_inplace(array, average, name, priority))


def push_pull_async_inplace(
    array: numpy.ndarray, average: bool = True, name: Optional[str] = None, priority: int = 0
) -> int:
    """Starts push_pull_inplace(array) and returns. Collective: every rank must start the same requests.

    Args:
        array: As in push_pull_async(), and writable. The program must neither read nor write it until synchronize().
        average: As in push_pull_async().
        name: As in push_pull_async().
        priority: As in push_pull_async().

    Returns:
        A handle for poll() and synchronize(), whose result is `array` itself.

    Raises:
        TypeError: As in push_pull_async(); or `array` is read-only.
        GleanerError: As in push_pull_async().
    """
    _check_writable(array)
    options = PushPullOptions(average, name, priority, in_place=True)
    return exchange.push_pull_async(process.current(), arrays.NUMPY, array, options)


def declare(array: numpy.ndarray, name: str, priority: int = 0) -> None:
    """Declares a tensor before its first push_pull. Optional: the first push_pull of a name declares its tensor, too.

    A job whose ranks declare all tensors before the first push_pull needs only one plan for them. Does not block, and
    may be called from several threads. Every rank must declare the tensor. If ranks differ in its size or type, the
    session ends with an InvalidArgumentError at the first push_pull.

    Args:
        array: Array of a type that can be summed; only its size and type matter.
        name: Name of the tensor, the same on all ranks; 1 to 4096 bytes.
        priority: As in push_pull_async().

    Raises:
        TypeError: `array` is not an array of a type that can be summed.
        InvalidArgumentError: `name` or `priority` is out of range, or this rank has declared `name` differently.
        FailedPreconditionError: There is no session.
    """
    exchange.declare(process.current(), arrays.NUMPY, _as_array(array), name, priority)


def push_pull_async(array: numpy.ndarray, average: bool = True, name: Optional[str] = None, priority: int = 0) -> int:
    """Starts push_pull(array) and returns. Collective: every rank must start the same requests.

    May be called from any thread; without a name always from the same thread.

    Args:
        array: Array of float32, float64, float16, bfloat16 or int32 in native byte order, of any shape, with the same
            number of elements and the same type on all ranks. It must stay unchanged until synchronize().
        average: True: the average; False: the sum. The same on all ranks.
        name: Name of the tensor, the same on all ranks; 1 to 4096 bytes. None: the package makes a name from the type
            and the size.
        priority: Requests with lower values are sent first; -2**31 to 2**31 - 1. All ranks use the value of rank 0.

    Returns:
        A handle for poll() and synchronize().

    Raises:
        TypeError: `array` is not an array of one of these types, `average` is not a bool, or `average` is True and
            `array` is int32.
        InvalidArgumentError: `name` or `priority` is out of range, or this rank has used `name` for a tensor with
            another size, type or priority.
        FailedPreconditionError: There is no session, the tensor of that name is in flight, or another thread has
            started requests without a name.
        UnavailableError: The session has failed; see gleaner.errors.
        WorkersChanged: The round of an elastic job has ended.
    """
    options = PushPullOptions(average, name, priority)
    return exchange.push_pull_async(process.current(), arrays.NUMPY, _as_array(array), options)


def accumulate(array: numpy.ndarray, name: str, staleness: Optional[int] = None, priority: int = 0) -> numpy.ndarray:
    """Adds `array` to the running sum of this name and returns the new sum. Blocks.

    The running sum starts from zero. If `staleness` is None, the call waits for no other worker, so workers may make
    different numbers of calls, and results differ from run to run.

    Args:
        array: As in accumulate_async().
        name: As in accumulate_async().
        staleness: As in accumulate_async().
        priority: As in push_pull_async().

    Returns:
        A new row-major array with the shape and type of `array`.

    Raises:
        TypeError: As in accumulate_async().
        GleanerError: As in accumulate_async() and synchronize().
    """
    return synchronize(accumulate_async(array, name, staleness, priority))


def accumulate_async(array: numpy.ndarray, name: str, staleness: Optional[int] = None, priority: int = 0) -> int:
    """Starts accumulate(array) and returns. Every rank must make such requests; each worker does so at its own pace.

    Local ranks of one worker wait for each other, so all of them must make the same calls. May be called from any
    thread.

    Args:
        array: Array of float32 or int32 of any shape, with the same number of elements and the same type on all ranks.
            It must stay unchanged until synchronize().
        name: Name of the running sum, the same on all ranks. It must not be used by push_pull.
        staleness: The request waits while another worker is more than this many requests of this name behind; the same
            on all ranks, 0 or more. None: the request waits for no other worker.
        priority: As in push_pull_async().

    Returns:
        A handle for poll() and synchronize().

    Raises:
        TypeError: `array` is not an array of a type that can be summed.
        InvalidArgumentError: The type is neither float32 nor int32, `staleness` is negative, or as in
            push_pull_async().
        GleanerError: As in push_pull_async().
    """
    options = AccumulateOptions(name, staleness, priority)
    return exchange.accumulate_async(process.current(), arrays.NUMPY, array, options)


def register_memory(array: numpy.ndarray) -> None:
    """Registers the memory of an array that is sent repeatedly, so that RDMA sends it without a copy.

    Results do not change. The package keeps the array and its memory until unregister_memory() or shutdown(). May be
    called from several threads; not collective.

    Args:
        array: Array in row-major order without gaps.

    Raises:
        TypeError: `array` is not an array of a type that can be summed.
        InvalidArgumentError: `array` is empty or has gaps, or a part of its memory is registered already.
        GleanerError: There is no session, or it has failed; see gleaner.errors.
    """
    exchange.register_memory(process.current(), arrays.NUMPY, array)


def unregister_memory(array: numpy.ndarray) -> None:
    """Unregisters memory that was passed to register_memory(). May be called from several threads; not collective.

    Args:
        array: An array that begins at the same address as the array that was registered.

    Raises:
        InvalidArgumentError: This memory is not registered.
        FailedPreconditionError: Requests that use the memory are in flight, or there is no session.
    """
    exchange.unregister_memory(process.current(), arrays.NUMPY, array)


def synchronize(handle: int) -> numpy.ndarray:
    """Waits for a request and returns its result. Call it once for each handle, from any thread.

    Args:
        handle: Handle of push_pull_async() or accumulate_async().

    Returns:
        The result: a new row-major array with the shape and type of the array that was sent.

    Raises:
        InvalidArgumentError: The handle is unknown, or was synchronized before; or ranks differ in size, type or
            operation, which ends the session. The message names the tensor and the ranks.
        FailedPreconditionError: There is no session.
        UnavailableError: A rank or the coordinator is lost; the message names it.
        WorkersChanged: The round of an elastic job has ended.
    """
    return process.current().synchronize(handle)


def broadcast(array: numpy.ndarray, root_rank: int = 0) -> numpy.ndarray:
    """Copies the array of rank `root_rank` to all ranks, bit for bit, into a new array. Collective; blocks.

    May be called from one thread at a time.

    Args:
        array: Array of any type without Python objects, with the same shape and type on all ranks. Only the root's
            values matter.
        root_rank: Rank whose array is copied; the same on all ranks.

    Returns:
        A new row-major array with the shape and type of `array`.

    Raises:
        TypeError: `array` holds Python objects.
        InvalidArgumentError: `root_rank` is not a rank, or shape or type differ from the root's (only this rank raises
            these), or ranks pass different roots (all ranks raise this).
        GleanerError: There is no session, or it has failed; see gleaner.errors.
    """
    if array.dtype.hasobject:
        raise TypeError("an array of Python objects has no bytes to send; use broadcast_object")
    copy = numpy.array(array, order="C")
    description = f"{array.shape} {array.dtype}"
    exchange.broadcast_described(process.current(), copy.reshape(-1).view(numpy.uint8), description, root_rank)
    return copy


def broadcast_(array: numpy.ndarray, root_rank: int = 0) -> numpy.ndarray:
    """Overwrites `array` with the array of rank `root_rank`, bit for bit. Collective; blocks.

    Args:
        array: As in broadcast(), and writable.
        root_rank: As in broadcast().

    Returns:
        `array` itself.

    Raises:
        TypeError: `array` holds Python objects, or is read-only.
        GleanerError: As in broadcast().
    """
    _check_writable(array)
    copy = broadcast(array, root_rank)
    array[...] = copy  # of the same type, so no bit changes
    return array


def _check_writable(array: numpy.ndarray) -> None:
    if not isinstance(array, numpy.ndarray):
        raise TypeError(f"expected a numpy array, not {type(array).__name__}")
    if not array.flags.writeable:
        raise TypeError("the array is read-only, so no result can overwrite it")


def _as_array(array: numpy.ndarray) -> numpy.ndarray:
    """Converts a numpy scalar, such as mean() returns, to an array. Returns every other value unchanged."""
    return numpy.asarray(array) if isinstance(array, numpy.generic) else array


__all__ = [
    "Codec",
    "DataType",
    "DeadlineExceededError",
    "FailedPreconditionError",
    "GleanerError",
    "InternalError",
    "InvalidArgumentError",
    "Method",
    "Op",
    "PermissionDeniedError",
    "RankInfo",
    "ResourceExhaustedError",
    "Session",
    "Stats",
    "UnavailableError",
    "WorkersChanged",
    "accumulate",
    "accumulate_async",
    "broadcast",
    "broadcast_",
    "broadcast_object",
    "declare",
    "init",
    "is_initialized",
    "local_rank",
    "local_size",
    "poll",
    "push_pull",
    "push_pull_async",
    "push_pull_async_inplace",
    "push_pull_inplace",
    "rank",
    "register_memory",
    "shutdown",
    "size",
    "stats",
    "synchronize",
    "tensor_plan",
    "transports",
    "unregister_memory",
]
