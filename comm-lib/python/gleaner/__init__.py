"""Gleaner for numpy: sums arrays over all ranks of a job.

    import gleaner, numpy
    gleaner.init()                                  # who we are comes from the environment: see `gleaner run`
    mean = gleaner.push_pull(numpy.ones(10, numpy.float32), name="ones")
    gleaner.shutdown()

float32, float64, float16, int32 and, where ml_dtypes is installed, bfloat16. Sums are in rank order with float32
accumulation for the half types: the same bits on every rank, every time. For PyTorch see gleaner.torch. Errors are
GleanerError. Every rank must start the same push_pulls.
"""

from __future__ import annotations

from typing import Any, Optional

import numpy

from gleaner import arrays, exchange, process
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
from gleaner.process import init, is_initialized, local_rank, local_size, rank, shutdown, size, stats, transports
from gleaner.session import DataType, Op, Session, Stats, Topology

__version__ = "0.1.0"


def push_pull(
    array: numpy.ndarray, average: bool = True, name: Optional[str] = None, priority: int = 0
) -> numpy.ndarray:
    """The average, or sum, of `array` over all ranks, in a new array of its shape and type. Blocks."""
    return synchronize(push_pull_async(array, average, name, priority))


def push_pull_async(array: numpy.ndarray, average: bool = True, name: Optional[str] = None, priority: int = 0) -> int:
    """Starts push_pull(array); leave `array` unchanged until synchronize(handle). Lower priority values go first.

    All ranks use the same name, shape size and type. One push_pull per name at a time. Without a name one is made from
    type and size; then all ranks must start their unnamed push_pulls in the same order, from one thread.
    """
    if isinstance(array, numpy.generic):  # what mean() and sum() give
        array = numpy.asarray(array)
    return exchange.push_pull_async(
        process.current(), arrays.NUMPY, array, average=average, name=name, priority=priority, in_place=False
    )


def accumulate(array: numpy.ndarray, name: str, staleness: Optional[int] = None, priority: int = 0) -> numpy.ndarray:
    """Adds `array` to the running sum of this name, which starts from zero, and returns it as it is then. Blocks.

    Waits for no other worker, or with a staleness for those that are more than so many calls behind. float32, int32.
    """
    return synchronize(accumulate_async(array, name, staleness, priority))


def accumulate_async(array: numpy.ndarray, name: str, staleness: Optional[int] = None, priority: int = 0) -> int:
    """Starts accumulate(array); leave `array` unchanged until synchronize(handle). Lower priority values go first."""
    return exchange.push_pull_async(
        process.current(),
        arrays.NUMPY,
        array,
        average=False,
        name=name,
        priority=priority,
        in_place=False,
        accumulate=True,
        staleness=staleness,
    )


def register_memory(array: numpy.ndarray) -> None:
    """Says that `array` is pushed from again and again: where RDMA carries it, no copy of it is made.

    It is kept, with its memory, until unregister_memory(array) or shutdown(). Results are the same with and without.
    """
    exchange.register_memory(process.current(), arrays.NUMPY, array)


def unregister_memory(array: numpy.ndarray) -> None:
    """Of what register_memory() was given. FailedPreconditionError while push_pulls of it are in flight."""
    exchange.unregister_memory(process.current(), arrays.NUMPY, array)


def poll(handle: int) -> bool:
    """True when synchronize(handle) would not block."""
    return process.current().poll(handle)


def synchronize(handle: int) -> numpy.ndarray:
    """Waits for a push_pull_async and returns its result; once per handle."""
    return process.current().synchronize(handle)


def broadcast(array: numpy.ndarray, root_rank: int = 0) -> numpy.ndarray:
    """Rank `root_rank`'s `array`, of any fixed-size type, on all ranks, bit for bit, as a new array. Blocks."""
    if array.dtype.hasobject:
        raise TypeError("an array of Python objects has no bytes to send; use broadcast_object")
    copy = numpy.array(array, order="C")
    exchange.broadcast_bytes(process.current(), copy.reshape(-1).view(numpy.uint8), root_rank)
    return copy


def broadcast_object(value: Any, root_rank: int = 0) -> Any:
    """Rank `root_rank`'s `value`, pickled, on all ranks. Blocks."""
    return exchange.broadcast_object(process.current(), value, root_rank)


__all__ = [
    "DataType",
    "DeadlineExceededError",
    "FailedPreconditionError",
    "GleanerError",
    "InternalError",
    "InvalidArgumentError",
    "Op",
    "PermissionDeniedError",
    "ResourceExhaustedError",
    "Session",
    "Stats",
    "Topology",
    "UnavailableError",
    "WorkersChanged",
    "accumulate",
    "accumulate_async",
    "broadcast",
    "broadcast_object",
    "init",
    "is_initialized",
    "local_rank",
    "local_size",
    "poll",
    "push_pull",
    "push_pull_async",
    "rank",
    "register_memory",
    "shutdown",
    "size",
    "stats",
    "synchronize",
    "transports",
    "unregister_memory",
]
