"""push_pull and broadcast for anything that is an array: shared by numpy and torch.

A framework says by an `Arrays` object how its arrays are looked at; the rest is the same for all.
"""

from __future__ import annotations

import pickle
from typing import Any, Optional, Protocol, TypeVar

import numpy

from gleaner.errors import InvalidArgumentError
from gleaner.session import DataType, Op, Session

T = TypeVar("T")

# One broadcast carries at most this much, so that packing needs little memory beside the data.
_BROADCAST_BYTES = 64 << 20


class Arrays(Protocol[T]):
    """What exchange needs to know of a framework's arrays."""

    def data_type(self, array: T) -> DataType:
        """Its element type; TypeError when it is none that can be summed, saying which are."""

    def elements(self, array: T) -> int: ...

    def contiguous(self, array: T) -> T:
        """The array itself when its elements lie in row-major order without gaps, else a copy that does."""

    def empty_like(self, array: T) -> T:
        """A new row-major array of its shape and type."""

    def hold(self, array: T) -> object:
        """What keeps its memory, whatever becomes of the array."""

    def address(self, array: T) -> int: ...

    def copy(self, target: T, source: T) -> None: ...


def push_pull_async(
    session: Session,
    arrays: Arrays[T],
    array: T,
    *,
    average: bool,
    name: Optional[str],
    priority: int,
    in_place: bool,
    accumulate: bool = False,
    staleness: Optional[int] = None,
) -> int:
    """Starts the sum or average of `array` over all ranks; the handle's result has its shape and type.

    With `accumulate` it is added to a running sum of all that was pushed under this name, which is the result.

    The memory is kept until the handle is synchronized, and must not be changed till then. Without a name one is made
    from type and size: then all ranks must start their unnamed push_pulls in the same order, from one thread.
    """
    if not isinstance(average, bool):
        raise TypeError(f"average must be True or False, not {average!r}; pass a name as name=…")
    data_type = arrays.data_type(array)
    elements = arrays.elements(array)
    if accumulate and name is None:
        raise InvalidArgumentError("what is accumulated needs a name: pass name=…")
    average = average and not accumulate
    if average and data_type is DataType.INT32:
        raise TypeError("an average of int32 is not an integer: pass average=False, or convert to a floating type")
    if name is None:
        name = session.unused_name(f"unnamed.{data_type.name.lower()}.{elements}")
    source = arrays.contiguous(array)
    output = source if in_place else arrays.empty_like(source)

    def result() -> T:
        if in_place and source is not array:
            arrays.copy(array, source)
        return array if in_place else output

    if accumulate:
        tensor, op = session.declare_accumulated(name, elements, data_type, priority, staleness), Op.ACCUMULATE
    else:
        tensor, op = session.declare(name, elements, data_type, priority), Op.AVERAGE if average else Op.SUM
    return session.push_pull_async(tensor, arrays.address(source), arrays.address(output), op, name, result)


def bytes_of(arrays: Arrays[T], array: T) -> int:
    """How many its elements take; TypeError as data_type()."""
    return arrays.elements(array) * arrays.data_type(array).size


def register_memory(session: Session, arrays: Arrays[T], array: T) -> None:
    """Says that `array` is pushed from again and again: where RDMA carries it, no copy of it is made.

    It is kept, with its memory, until unregister_memory(). Has no effect on results, nor without RDMA.
    """
    if arrays.contiguous(array) is not array:
        raise InvalidArgumentError("only memory without gaps can be registered; register what contiguous() gives")
    session.register_memory(arrays.address(array), bytes_of(arrays, array), arrays.hold(array))


def unregister_memory(session: Session, arrays: Arrays[T], array: T) -> None:
    """Of what register_memory() was given. FailedPreconditionError while push_pulls of it are in flight."""
    session.unregister_memory(arrays.address(array))


def broadcast_bytes(session: Session, data: numpy.ndarray, root: int) -> None:
    """Overwrites `data`, uint8 of the same size on all ranks, with that of rank `root`. Blocks."""
    for start in range(0, data.size, _BROADCAST_BYTES):
        part = data[start : start + _BROADCAST_BYTES]
        padded = numpy.zeros(size_class(part.size), dtype=numpy.uint8)
        padded[: part.size] = part
        session.broadcast(f"broadcast.{padded.size}", padded.ctypes.data, padded.size, root)
        part[:] = padded[: part.size]


def broadcast_object(session: Session, value: Any, root: int) -> Any:
    """Rank `root`'s `value`, pickled, on all ranks; what the others pass is not looked at. Blocks."""
    is_root = session.topology.rank == root
    payload = pickle.dumps(value) if is_root else b""
    size = numpy.array([len(payload)], dtype="<u8")
    broadcast_bytes(session, size.view(numpy.uint8), root)
    data = numpy.empty(int(size[0]), dtype=numpy.uint8)
    data[: len(payload)] = numpy.frombuffer(payload, dtype=numpy.uint8)
    broadcast_bytes(session, data, root)
    return value if is_root else pickle.loads(data.tobytes())


def size_class(size: int) -> int:
    """`size` rounded up to one of eight sizes per power of two, at least 64 bytes.

    A broadcast's name carries its size, and every name stays in the plan: few sizes keep the plan small.
    """
    unit = max(64, 1 << max(0, size.bit_length() - 4))
    return max(unit, -(-size // unit) * unit)


__all__ = [
    "Arrays",
    "broadcast_bytes",
    "broadcast_object",
    "bytes_of",
    "push_pull_async",
    "register_memory",
    "size_class",
    "unregister_memory",
]
