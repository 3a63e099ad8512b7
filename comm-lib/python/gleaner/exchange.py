"""push_pull, accumulate and broadcast for arrays of any framework: the code behind gleaner and gleaner.torch.

Functions take the session and an `Arrays` object, which gives access to the arrays of one framework. The public
functions in gleaner/__init__.py (numpy) and gleaner/torch (PyTorch) call these with the session of the process, and
document arguments and errors for users. Threads: as in gleaner.session.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Callable, Optional, Protocol, TypeVar

import numpy

from gleaner.codec import SentAs
from gleaner.errors import InvalidArgumentError
from gleaner.session import DataType, GpuMemory, Op, Session

T = TypeVar("T")

# Largest single broadcast in bytes. Larger data is sent in parts, so that the copies for sending need little memory.
_BROADCAST_BYTES = 64 << 20

# Bytes of the description that goes before the elements of a broadcast tensor.
_DESCRIPTION_BYTES = 64


class Arrays(Protocol[T]):
    """Gives access to the arrays of one framework. address() is the address of the first element."""

    def data_type(self, array: T) -> DataType:
        """Returns the element type. Raises TypeError if arrays of this kind or type cannot be summed."""

    def elements(self, array: T) -> int: ...

    def contiguous(self, array: T) -> T:
        """Returns the array itself if its elements lie in row-major order without gaps, else a copy in that layout."""

    def empty_like(self, array: T) -> T:
        """Returns a new row-major array with the shape and type of `array`."""

    def hold(self, array: T) -> object:
        """Returns an object that keeps the array's memory alive, even if `array` gets other memory."""

    def address(self, array: T) -> int: ...

    def copy(self, target: T, source: T) -> None: ...

    def gpu(self, source: T, output: T) -> Optional[GpuMemory]:
        """Returns the memory of a request if it is on a GPU; None: it is the host's."""


@dataclass(frozen=True)
class PushPullOptions:
    """The options of push_pull_async(). All ranks must pass the same `average` and `name`.

    The public functions take `average`, `name` and `priority` as arguments with the same defaults.

    Attributes:
        average: True: the result is the average over all ranks; False: the sum.
        name: Name of the tensor, 1 to 4096 bytes. None: push_pull_async() makes a name from the type and the size; all
            ranks must then start their requests without a name in the same order, from one thread.
        priority: Requests with lower values are sent first; -2**31 to 2**31 - 1. All ranks use the value of rank 0.
        in_place: True: the result overwrites the array. False: the result is a new array.
        members: As in Session.declare().
        sent_as: As in Session.declare().

    Raises:
        TypeError: `average` is not a bool.
    """

    average: bool = True
    name: Optional[str] = None
    priority: int = 0
    in_place: bool = False
    members: Optional[Sequence[int]] = None
    sent_as: Optional[SentAs] = None

    def __post_init__(self) -> None:
        if not isinstance(self.average, bool):
            raise TypeError(f"average must be True or False, not {self.average!r}; pass a name as name=…")


@dataclass(frozen=True)
class AccumulateOptions:
    """The options of accumulate_async(). All ranks must pass the same `name` and `staleness`.

    Attributes:
        name: Name of the running sum, 1 to 4096 bytes.
        staleness: The request waits while another worker is more than this many requests of this name behind. None: the
            request waits for no other worker.
        priority: As in PushPullOptions.
        in_place: As in PushPullOptions.

    Raises:
        InvalidArgumentError: `name` is None.
    """

    name: str
    staleness: Optional[int] = None
    priority: int = 0
    in_place: bool = False

    def __post_init__(self) -> None:
        if self.name is None:
            raise InvalidArgumentError("accumulate() needs the name of a running sum: pass name=…")


def declare(session: Session, arrays: Arrays[T], array: T, name: str, priority: int) -> int:
    """Declares the tensor `name` with the size and type of `array`, and returns its id on this rank."""
    data_type = arrays.data_type(array)  # first, because it checks that `array` is an array
    return session.declare(name, arrays.elements(array), data_type, priority)


def push_pull_async(session: Session, arrays: Arrays[T], array: T, options: PushPullOptions) -> int:
    """Starts a request for the sum or average of `array` over all ranks, and returns its handle.

    The result of the handle has the shape and type of `array`. The session keeps the memory until the handle is
    synchronized; the program must not change it until then.

    Raises:
        TypeError: `array` cannot be summed, or `options` ask for an average of int32.
        GleanerError: As in Session.declare(), Session.unused_name() and Session.push_pull_async().
    """
    data_type, elements = arrays.data_type(array), arrays.elements(array)
    if options.average and data_type is DataType.INT32:
        raise TypeError("an average of int32 is not an integer: pass average=False, or convert to a floating type")
    name = options.name
    if name is None:
        name = session.unused_name(f"unnamed.{data_type.name.lower()}.{elements}")
    tensor = session.declare(name, elements, data_type, options.priority, options.members, options.sent_as)
    op = Op.AVERAGE if options.average else Op.SUM
    return _start(session, arrays, array, tensor, op, name, options.in_place)


def accumulate_async(session: Session, arrays: Arrays[T], array: T, options: AccumulateOptions) -> int:
    """Starts a request that adds `array` to the running sum `options.name`, and returns its handle.

    The result of the handle is the new running sum, with the shape and type of `array`. The session keeps the memory
    until the handle is synchronized; the program must not change it until then.

    Raises:
        TypeError: `array` cannot be summed.
        GleanerError: As in Session.declare_accumulated() and Session.push_pull_async().
    """
    data_type = arrays.data_type(array)
    tensor = session.declare_accumulated(
        options.name, arrays.elements(array), data_type, options.priority, options.staleness
    )
    return _start(session, arrays, array, tensor, Op.ACCUMULATE, options.name, options.in_place)


def _start(session: Session, arrays: Arrays[T], array: T, tensor: int, op: Op, name: str, in_place: bool) -> int:
    """Starts a request for a declared tensor and returns its handle. The result of the handle is an array."""
    source = arrays.contiguous(array)
    output = source if in_place else arrays.empty_like(source)

    def result() -> T:
        if in_place and source is not array:
            arrays.copy(array, source)
        return array if in_place else output

    addresses = arrays.address(source), arrays.address(output)
    return session.push_pull_async(tensor, *addresses, op, name, result, arrays.gpu(source, output))


def bytes_of(arrays: Arrays[T], array: T) -> int:
    """Returns the size of all elements in bytes. Raises the TypeError of Arrays.data_type()."""
    return arrays.elements(array) * arrays.data_type(array).size


def register_memory(session: Session, arrays: Arrays[T], array: T) -> None:
    """Registers the memory of `array`, so that RDMA sends requests from there without a copy.

    The session keeps the memory alive until unregister_memory() or close(). Without RDMA, and for the memory of a GPU,
    this has no effect. Raises InvalidArgumentError if the array is not contiguous, or if a part of its memory is
    registered already.
    """
    if arrays.gpu(array, array) is not None:
        return
    if arrays.contiguous(array) is not array:
        raise InvalidArgumentError(
            "only memory without gaps can be registered, in which the elements lie as they are; register a contiguous "
            "copy (with PyTorch tensor.clone().contiguous()), and send that copy"
        )
    session.register_memory(arrays.address(array), bytes_of(arrays, array), arrays.hold(array))


def unregister_memory(session: Session, arrays: Arrays[T], array: T) -> None:
    """Unregisters memory that was passed to register_memory().

    Raises FailedPreconditionError while requests that use the memory are in flight.
    """
    if arrays.gpu(array, array) is not None:
        return
    session.unregister_memory(arrays.address(array))


def broadcast_bytes(session: Session, data: numpy.ndarray, root: int) -> None:
    """Overwrites `data` with the `data` of rank `root`. Collective; blocks.

    `data` is one-dimensional, of type uint8, and has the same size on all ranks.
    """
    for start in range(0, data.size, _BROADCAST_BYTES):
        part = data[start : start + _BROADCAST_BYTES]
        padded = numpy.zeros(size_class(part.size), dtype=numpy.uint8)
        padded[: part.size] = part
        session.broadcast(f"broadcast.{padded.size}", padded.ctypes.data, padded.size, root)
        part[:] = padded[: part.size]


def broadcast_described(session: Session, data: numpy.ndarray, description: str, root: int) -> None:
    """Overwrites `data`, uint8, with the bytes of rank `root`. Collective; blocks.

    `description` tells shape and type, which ranks must agree on. Sizes may differ without being noticed otherwise,
    since broadcast_bytes() rounds them up. Raises InvalidArgumentError if the root's description is another one.
    """
    text = description.encode()
    if len(text) > _DESCRIPTION_BYTES:
        text = hashlib.sha256(text).hexdigest().encode()
    packed = numpy.concatenate([numpy.frombuffer(text.ljust(_DESCRIPTION_BYTES), numpy.uint8), data])
    broadcast_bytes(session, packed, root)
    theirs = packed[:_DESCRIPTION_BYTES].tobytes().rstrip()
    if theirs != text:
        raise InvalidArgumentError(
            f"rank {session.rank_info.rank} broadcasts {description}, and rank {root}, the root, "
            f"{theirs.decode(errors='replace')}; shape and type must be the same on all ranks"
        )
    data[:] = packed[_DESCRIPTION_BYTES:]


def broadcast_object(session: Session, value: Any, root: int, pickled: Callable[[Any], bytes] = pickle.dumps) -> Any:
    """Copies the `value` of rank `root` to all ranks with pickle, and returns it. Collective; blocks.

    The values that other ranks pass are ignored. `pickled` makes the pickle of the root's value.
    """
    is_root = session.rank_info.rank == root
    payload = pickled(value) if is_root else b""
    size = numpy.array([len(payload)], dtype="<u8")
    broadcast_bytes(session, size.view(numpy.uint8), root)
    data = numpy.empty(int(size[0]), dtype=numpy.uint8)
    data[: len(payload)] = numpy.frombuffer(payload, dtype=numpy.uint8)
    broadcast_bytes(session, data, root)
    return value if is_root else pickle.loads(data.tobytes())


def size_class(size: int) -> int:
    """Rounds `size` bytes up to one of eight sizes per power of two, at least 64 bytes.

    The name of a broadcast contains its size, and every name stays in the plan, so few sizes keep the plan small.
    """
    unit = max(64, 1 << max(0, size.bit_length() - 4))
    return max(unit, -(-size // unit) * unit)


__all__ = [
    "AccumulateOptions",
    "Arrays",
    "PushPullOptions",
    "accumulate_async",
    "broadcast_bytes",
    "broadcast_described",
    "broadcast_object",
    "bytes_of",
    "declare",
    "push_pull_async",
    "register_memory",
    "size_class",
    "unregister_memory",
]
