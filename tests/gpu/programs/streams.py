"""Checks the order of push_pulls with the streams of CUDA, and the errors about streams. On CPUs most are skipped."""

from __future__ import annotations

import gleaner.torch as gln
import ranks
import torch
from checking import raises

ELEMENTS = 1 << 20
LONG = 400_000_000  # cycles of a GPU: about a quarter of a second


def delayed_fill(tensor: torch.Tensor, value: float) -> None:
    """Queues a long wait on the current stream, and then a write to all elements."""
    torch.cuda._sleep(LONG)
    tensor.fill_(value)


def zeros() -> torch.Tensor:
    return torch.zeros(ELEMENTS, device="cuda")


def assert_all(tensor: torch.Tensor, value: float) -> None:
    wrong = int((tensor != value).sum())
    assert wrong == 0, f"{wrong} elements differ from {value}; the first is {tensor.reshape(-1)[0].item()}"


def check_input_of_the_current_stream() -> None:
    ranks.needs_cuda()
    tensor = zeros()
    delayed_fill(tensor, 3.0)
    assert_all(gln.push_pull(tensor, name="current stream"), 3.0)


def check_input_of_a_side_stream() -> None:
    ranks.needs_cuda()
    stream = torch.cuda.Stream()
    tensor = zeros()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        delayed_fill(tensor, 4.0)
        result = gln.push_pull(tensor, name="side stream")
        assert_all(result, 4.0)


def check_result_in_the_stream_that_synchronizes() -> None:
    ranks.needs_cuda()
    tensor = zeros()
    delayed_fill(tensor, 5.0)
    handle = gln.push_pull_async_inplace(tensor, name="other consumer")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        assert_all(gln.synchronize(handle), 5.0)


def check_consumer_on_another_stream() -> None:
    ranks.needs_cuda()
    tensor = zeros()
    delayed_fill(tensor, 6.0)
    result = gln.push_pull(tensor, name="third stream")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        assert_all(result, 6.0)


def check_overwritten_after_synchronize() -> None:
    ranks.needs_cuda()
    tensor = torch.full((ELEMENTS,), 7.0, device="cuda")
    results = []
    for i in range(10):
        results.append(gln.push_pull(tensor, name="overwritten"))
        tensor.fill_(8.0 + i)
    for i, result in enumerate(results):
        assert_all(result, 7.0 + i)


def check_deleted_in_flight() -> None:
    ranks.needs_cuda()
    handles = []
    for i in range(10):
        tensor = zeros()
        delayed_fill(tensor, float(i)) if i == 0 else tensor.fill_(float(i))
        handles.append(gln.push_pull_async(tensor, name=f"deleted.{i}"))
        del tensor
        torch.full((ELEMENTS,), -1.0, device="cuda")
    for i, handle in enumerate(handles):
        assert_all(gln.synchronize(handle), float(i))


def check_queueing_does_not_wait() -> None:
    ranks.needs_cuda()
    tensor = zeros()
    gln.push_pull(tensor, name="queued")
    torch.cuda._sleep(4 * LONG)
    tensor.fill_(9.0)
    made = torch.cuda.Event()
    made.record()
    handle = gln.push_pull_async(tensor, name="queued")
    waited = made.query()
    assert_all(gln.synchronize(handle), 9.0)
    assert not waited, "push_pull_async() returned only after the GPU had made the tensor"


def check_other_streams_go_on() -> str:
    ranks.needs_cuda()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(8 * LONG)
        slept = torch.cuda.Event()
        slept.record()
    gln.push_pull(torch.full((ELEMENTS,), 1.0, device="cuda"), name="beside")
    went_on = not slept.query()
    torch.cuda.synchronize()
    assert went_on, "push_pull() waited for a stream that has nothing to do with its tensor"
    return "no device-wide synchronization"


def check_graph_capture_is_refused() -> str:
    ranks.needs_cuda()
    tensor = zeros()
    gln.push_pull(tensor, name="captured")
    torch.cuda.synchronize()
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    message = ""
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        graph.capture_begin(capture_error_mode="thread_local")
        try:
            message = raises(gln.GleanerError, lambda: gln.push_pull(tensor, name="captured"))
        finally:
            graph.capture_end()
    assert "graph" in message, message
    assert_all(gln.push_pull(zeros() + 2, name="captured"), 2.0)
    return message


def check_cpu_tensors_beside_cuda_tensors() -> None:
    device = ranks.device_of(gln.local_rank())
    handles = [
        gln.push_pull_async(torch.full((20_000,), float(i), device=where), name=f"beside.{i}.{number}")
        for i in range(10)
        for number, where in enumerate(("cpu", device))
    ]
    for number, handle in enumerate(handles):
        result = gln.synchronize(handle)
        assert result.device.type == ("cpu" if number % 2 == 0 else device.type)
        assert_all(result, float(number // 2))


if __name__ == "__main__":
    ranks.run(globals())
