"""Checks push_pulls of the memory of a GPU through the session of the Python package, for any number of ranks."""

from __future__ import annotations

import ctypes
import os
import time

import gleaner
import numpy
from checking import data_of, raises, run_checks, same_bits
from cuda_caller import CUDA, IS_DOUBLE, Memory, Program, Stream, find_nothing_wrong, finish, push_pull, start
from gleaner.arrays import NumpyArrays
from gleaner.errors import FailedPreconditionError, GleanerError, InvalidArgumentError
from gleaner.exchange import PushPullOptions, push_pull_async
from gleaner.session import DataType, Op

SIZES = (0, 1, 1000, 200_001, 3_000_000)
if IS_DOUBLE:
    CUDA.gln_double_reset(ctypes.c_uint64(gleaner.rank() + 1 if gleaner.is_initialized() else 1), 2, 12040)
PROGRAM = Program()


def everybodys(kind: str, elements: int) -> list[numpy.ndarray]:
    scale = 1 if kind != "int32" else 1000
    return [(data_of(rank, elements) * scale).astype(kind) for rank in range(gleaner.size())]


def mine(parts: list[numpy.ndarray]) -> numpy.ndarray:
    return parts[gleaner.rank()]


def host_sum(values: numpy.ndarray, name: str) -> numpy.ndarray:
    """Returns the sum over all ranks of arrays in the host's memory, whose bits other tests check."""
    return gleaner.push_pull(values, name=f"host.{name}", average=False)


def check_memory_of_a_gpu_is_refused_as_the_hosts() -> None:
    """Comes first: Gleaner has opened no GPU yet."""
    session, host = gleaner.process.current(), numpy.zeros(10, numpy.float32)
    on_gpu = PROGRAM.tensor(host)
    declared = session.declare("no stream", 10, DataType.FLOAT32)
    for addresses in ((on_gpu.address, host.ctypes.data), (host.ctypes.data, on_gpu.address)):
        message = raises(
            InvalidArgumentError,
            lambda a=addresses: session.push_pull_async(declared, *a, Op.SUM, "no stream", lambda: None),
        )
        assert "tensor 'no stream': its memory is on GPU 0; copy it to memory of the host first" in message
    message = raises(InvalidArgumentError, lambda: session.call("gln_broadcast", b"device", on_gpu.address, 40, 0))
    assert "broadcast of 'device': its memory is on GPU 0; copy it to memory of the host first" in message
    session.call("gln_broadcast", b"device", host.ctypes.data, 40, 0)


def check_sums_have_the_bits_of_the_hosts_sums() -> None:
    for kind in ("float32", "float64", "float16", "int32"):
        for elements in SIZES:
            parts = everybodys(kind, elements)
            on_gpu = push_pull(PROGRAM.tensor(mine(parts)), f"gpu.{kind}.{elements}").read()
            assert same_bits(on_gpu, host_sum(mine(parts), f"{kind}.{elements}")), f"{kind}, {elements} elements"
    find_nothing_wrong()


def check_averages_and_nans() -> None:
    parts = everybodys("float32", 5000)
    for part in parts:
        part[17] = numpy.nan
    average = push_pull(PROGRAM.tensor(mine(parts)), "average", Op.AVERAGE).read()
    assert same_bits(average, gleaner.push_pull(mine(parts), name="average.host"))


def check_results_may_overwrite_the_tensor() -> None:
    for turn in range(3):
        values = mine(everybodys("float32", 700_000)) + numpy.float32(turn)
        tensor = PROGRAM.tensor(values)
        push_pull(tensor, "in place", in_place=True)
        assert same_bits(tensor.read(), host_sum(values, "in place"))
    find_nothing_wrong()


def check_a_request_waits_for_the_programs_stream() -> None:
    if not IS_DOUBLE:
        return
    parts = everybodys("float32", 3000)
    PROGRAM.stream.hold(True)
    tensor = PROGRAM.tensor(mine(parts))  # queued, and not yet written
    output = PROGRAM.empty(3000, "float32")
    handle = start(tensor, output, "held")
    time.sleep(0.05)  # in which a request that does not wait would have been done
    assert not gleaner.process.current().poll(handle)
    PROGRAM.stream.hold(False)
    assert same_bits(finish(handle).read(), host_sum(mine(parts), "held"))


def check_another_stream_may_wait_for_the_result() -> None:
    other, parts = Stream(), everybodys("float32", 300_000)
    output = PROGRAM.empty(300_000, "float32")
    handle = start(PROGRAM.tensor(mine(parts)), output, "other stream", wait=other)
    assert same_bits(finish(handle).read(other), host_sum(mine(parts), "other"))
    find_nothing_wrong()


def check_many_requests_in_opposite_orders() -> None:
    parts = everybodys("float32", 400_000)
    order = list(range(30))
    if gleaner.rank() % 2:
        order.reverse()
    tensors = {i: PROGRAM.tensor(mine(parts) * numpy.float32(i)) for i in order}
    for _ in range(3):
        handles = {i: start(tensors[i], tensors[i], f"many.{i}", priority=-i) for i in order}
        for i in order:
            finish(handles[i])
    for i in range(30):  # in the order of all ranks
        expected = mine(parts) * numpy.float32(i)
        for _ in range(3):
            expected = host_sum(expected, f"many.{i}")
        assert same_bits(tensors[i].read(), expected), i
    find_nothing_wrong()


def check_ranks_with_and_without_a_gpu() -> None:
    parts = everybodys("float32", 90_000)
    if gleaner.rank() == 0:
        total = push_pull(PROGRAM.tensor(mine(parts)), "mixed").read()
    else:
        total = gleaner.push_pull(mine(parts), name="mixed", average=False)
    assert same_bits(total, host_sum(mine(parts), "mixed"))


def check_memory_at_the_wrong_place_is_refused() -> None:
    session = gleaner.process.current()
    on_host = numpy.zeros(10, numpy.float32)
    on_gpu = PROGRAM.tensor(on_host)
    declared = session.declare("misplaced", 10, gleaner.exchange.DataType.FLOAT32)
    for addresses in ((on_gpu.address, on_gpu.address), (on_host.ctypes.data, on_gpu.address)):
        message = raises(
            InvalidArgumentError,
            lambda a=addresses: session.push_pull_async(declared, *a, Op.SUM, "misplaced", lambda: None),
        )
        assert "on GPU 0; copy it to memory of the host first, or use gln_push_pull_on_stream()" in message
    on_host_tensor = type(on_gpu)(PROGRAM, on_host.ctypes.data, 10, "float32")
    message = raises(InvalidArgumentError, lambda: start(on_gpu, on_host_tensor, "misplaced"))
    assert "its memory is on the host, not on GPU 0" in message
    # The refused requests are over: the tensor can be used.
    push_pull(on_gpu, "misplaced").read()


def check_another_gpu_is_refused() -> None:
    if not IS_DOUBLE:
        return
    tensor = Program(1).tensor(numpy.zeros(10, numpy.float32))
    assert "a rank uses one GPU" in raises(InvalidArgumentError, lambda: push_pull(tensor, "second GPU"))
    Program(0)


def check_captured_streams_are_refused() -> None:
    if not IS_DOUBLE:
        return
    tensor, stream = PROGRAM.tensor(numpy.zeros(10, numpy.float32)), ctypes.c_void_p(PROGRAM.stream.number)
    CUDA.gln_double_capture(stream, 1)
    message = raises(FailedPreconditionError, lambda: push_pull(tensor, "captured", in_place=True))
    CUDA.gln_double_capture(stream, 0)
    assert "CUDA graph" in message
    push_pull(tensor, "captured").read()


def check_requests_go_on_while_another_stream_is_captured() -> None:
    if not IS_DOUBLE:
        return
    other, parts = Stream(), everybodys("float32", 2_000_000)
    tensor = PROGRAM.tensor(mine(parts))
    CUDA.gln_double_capture(ctypes.c_void_p(other.number), 1)
    push_pull(tensor, "beside a capture", in_place=True)
    CUDA.gln_double_capture(ctypes.c_void_p(other.number), 0)
    assert same_bits(tensor.read(), host_sum(mine(parts), "beside"))
    find_nothing_wrong()


def check_a_handle_outlives_a_wait_that_failed() -> None:
    if not IS_DOUBLE or gleaner.local_size() > 1:  # with local ranks the copy has ended, and no stream waits
        return
    tensor, stream = PROGRAM.tensor(numpy.zeros(10, numpy.float32)), ctypes.c_void_p(PROGRAM.stream.number)
    handle = start(tensor, tensor, "waits twice")
    CUDA.gln_double_capture(stream, 1)
    message = raises(FailedPreconditionError, lambda: finish(handle))
    CUDA.gln_double_capture(stream, 0)
    assert "CUDA graph" in message
    finish(handle).read()


def check_a_tensor_that_is_not_ready_holds_up_no_other() -> None:
    if not IS_DOUBLE:
        return
    late = Program()
    late.stream.hold(True)
    waits = late.tensor(numpy.ones(1000, numpy.float32))
    first = start(waits, waits, "late", priority=-100)
    push_pull(PROGRAM.tensor(numpy.ones(2_000_000, numpy.float32)), "early", in_place=True).read()
    late.stream.hold(False)
    assert finish(first).read()[0] == gleaner.size()


class FailingMemory(Memory):
    """Raises errors as PyTorch does when CUDA has failed, in the functions of these names."""

    def __init__(self, *fail_in: str) -> None:
        super().__init__(PROGRAM.ordinal, PROGRAM.stream)
        self.fail_in = fail_in

    def stream(self) -> int:
        self._fail_if("stream")
        return super().stream()

    def waited(self) -> None:
        self._fail_if("waited")

    def _fail_if(self, function: str) -> None:
        if function in self.fail_in:
            raise RuntimeError(f"CUDA error in {function}")


class FailingArrays(NumpyArrays):
    def gpu(self, source: numpy.ndarray, output: numpy.ndarray) -> None:
        raise RuntimeError("CUDA error in gpu")


def check_errors_of_the_framework_reach_the_caller() -> None:
    session, name = gleaner.process.current(), "framework's errors"
    tensor = PROGRAM.tensor(numpy.ones(1000, numpy.float32))
    declared = session.declare(name, tensor.elements, DataType.FLOAT32)
    kept = len(session._results)

    def begin(memory: FailingMemory) -> int:
        return session.push_pull_async(declared, tensor.address, tensor.address, Op.SUM, name, lambda: tensor, memory)

    assert "in stream" in raises(RuntimeError, lambda: begin(FailingMemory("stream")))
    options = PushPullOptions(name="framework's arrays")
    array = numpy.ones(10, numpy.float32)
    assert "in gpu" in raises(RuntimeError, lambda: push_pull_async(session, FailingArrays(), array, options))
    assert len(session._results) == kept, "the session keeps no memory of requests that did not begin"
    assert not session.in_flight(name)

    memory = FailingMemory()
    handle = begin(memory)
    memory.fail_in = ("stream",)
    assert "in stream" in raises(RuntimeError, lambda: session.synchronize(handle))
    assert session.in_flight(name), "the handle stays valid"
    memory.fail_in = ("waited",)
    assert "in waited" in raises(RuntimeError, lambda: session.synchronize(handle))
    assert not session.in_flight(name), "the request is over"
    push_pull(tensor, name, in_place=True)
    assert tensor.read()[0] == gleaner.size() ** 2
    assert gleaner.push_pull(array, name="framework's arrays", average=False)[0] == gleaner.size()


def check_forked_children_are_told() -> None:
    tensor = PROGRAM.empty(10, "float32")
    child = os.fork()
    if child == 0:
        message = raises(FailedPreconditionError, lambda: push_pull(tensor, "forked", in_place=True))
        os._exit(0 if "forked" in message else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def check_z_failed_gpus_end_the_session() -> None:
    """Comes last: the session ends."""
    if not IS_DOUBLE:
        return
    tensor = PROGRAM.tensor(numpy.zeros(100_000, numpy.float32))
    if gleaner.rank() == 0:
        CUDA.gln_double_fail_kernel(ctypes.c_void_p(PROGRAM.stream.number), 700)
    message = raises(GleanerError, lambda: [push_pull(tensor, "fails", in_place=True) for _ in range(1000)])
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in message, message


if __name__ == "__main__":
    gleaner.init()
    run_checks(globals())
