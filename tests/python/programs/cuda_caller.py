"""Plays a program with tensors on a GPU, over the functions of the CUDA driver: a real one, or the double of the tests.

There is no PyTorch here, which can't run on the double. The double is built as libcuda.so.1 (tests/doubles/cuda).
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field

import gleaner.process
import numpy
from gleaner.session import DataType, Op

CUDA = ctypes.CDLL("libcuda.so.1")
IS_DOUBLE = hasattr(CUDA, "gln_double_reset")
_PORTABLE = 1  # CU_MEMHOSTALLOC_PORTABLE
_TYPES = {kind.name.lower(): kind for kind in DataType}


def must(result: int) -> None:
    assert result == 0, f"CUDA error {result}"


def find_nothing_wrong() -> None:
    """Asserts that the double has seen no copy without an order, and no memory that was freed early."""
    if not IS_DOUBLE:
        return
    text = ctypes.create_string_buffer(4096)
    CUDA.gln_double_take_findings(text, ctypes.c_size_t(len(text)))
    assert text.value == b"", text.value.decode()


class Stream:
    """A stream of the program. It takes part in the legacy default stream's order, as cudaStreamCreate() makes it."""

    def __init__(self) -> None:
        self._handle = ctypes.c_void_p()
        must(CUDA.cuStreamCreateWithPriority(ctypes.byref(self._handle), 0, 0))
        self.number = self._handle.value or 0

    def synchronize(self) -> None:
        must(CUDA.cuStreamSynchronize(self._handle))

    def hold(self, is_held: bool) -> None:
        """Keeps the double from beginning what is queued on this stream, or lets it go on."""
        CUDA.gln_double_hold(self._handle, int(is_held))


class Program:
    """The thread that has the GPU's primary context current, and its memory."""

    def __init__(self, ordinal: int = 0) -> None:
        self.ordinal = ordinal
        device, context = ctypes.c_int(), ctypes.c_void_p()
        must(CUDA.cuInit(0))
        must(CUDA.cuDeviceGet(ctypes.byref(device), ordinal))
        must(CUDA.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
        must(CUDA.cuCtxSetCurrent(context))
        self.stream = Stream()

    def empty(self, elements: int, kind: str) -> Tensor:
        address = ctypes.c_uint64()
        must(CUDA.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(max(1, elements * numpy.dtype(kind).itemsize))))
        return Tensor(self, address.value, elements, kind)

    def tensor(self, values: numpy.ndarray) -> Tensor:
        """Returns a tensor whose values are written on this program's stream."""
        made = self.empty(values.size, values.dtype.name)
        made.write(values)
        return made


@dataclass
class Tensor:
    """Elements in the memory of the GPU, and pinned memory for write() and read(). The end of the process frees all."""

    program: Program
    address: int
    elements: int
    kind: str
    _pinned: dict[str, ctypes.c_void_p] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return self.elements * numpy.dtype(self.kind).itemsize

    def write(self, values: numpy.ndarray) -> None:
        source = self._pinned_for("write")
        ctypes.memmove(source, values.ctypes.data, self.size)
        self._copy(CUDA.cuMemcpyHtoDAsync_v2, ctypes.c_uint64(self.address), source)

    def read(self, stream: Stream | None = None) -> numpy.ndarray:
        """Returns the values after what is queued on the stream."""
        stream, to = stream or self.program.stream, self._pinned_for("read")
        self._copy(CUDA.cuMemcpyDtoHAsync_v2, to, ctypes.c_uint64(self.address), stream)
        stream.synchronize()
        return numpy.frombuffer(ctypes.string_at(to, self.size), self.kind)

    def _pinned_for(self, use: str) -> ctypes.c_void_p:
        if use not in self._pinned:
            self._pinned[use] = memory = ctypes.c_void_p()
            must(CUDA.cuMemHostAlloc(ctypes.byref(memory), ctypes.c_size_t(max(1, self.size)), _PORTABLE))
        return self._pinned[use]

    def _copy(self, function: ctypes._CFuncPtr, to: object, source: object, stream: Stream | None = None) -> None:
        if self.size > 0:
            number = (stream or self.program.stream).number
            must(function(to, source, ctypes.c_size_t(self.size), ctypes.c_void_p(number)))


@dataclass
class Memory:
    """Implements gleaner.session.GpuMemory."""

    ordinal: int
    at: Stream

    def stream(self) -> int:
        return self.at.number

    def waited(self) -> None:
        pass


def start(
    tensor: Tensor, output: Tensor, name: str, op: Op = Op.SUM, priority: int = 0, wait: Stream | None = None
) -> int:
    """Starts a push_pull on the program's stream. `wait`: the stream that synchronize() makes wait, if another one."""
    session, kind = gleaner.process.current(), _TYPES[tensor.kind]
    declared = session.declare(name, tensor.elements, kind, priority)
    memory = Memory(tensor.program.ordinal, tensor.program.stream)
    handle = session.push_pull_async(declared, tensor.address, output.address, op, name, lambda: output, memory)
    memory.at = wait or memory.at
    return handle


def finish(handle: int) -> Tensor:
    return gleaner.process.current().synchronize(handle)


def push_pull(tensor: Tensor, name: str, op: Op = Op.SUM, in_place: bool = False) -> Tensor:
    output = tensor if in_place else tensor.program.empty(tensor.elements, tensor.kind)
    return finish(start(tensor, output, name, op))
