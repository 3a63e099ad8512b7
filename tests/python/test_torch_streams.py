"""Tests how gleaner.torch orders work of several threads and streams of a GPU.

The streams are stand-ins, since PyTorch has no GPU here; tests/gpu/programs has real ones.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "comm-lib" / "python"))
torch = pytest.importorskip("torch")

from gleaner.torch.cross_barrier import UpdatesInForward  # noqa: E402
from gleaner.torch.tensors import CudaMemory  # noqa: E402


@dataclass
class Stream:
    """A stand-in for torch.cuda.Stream, which records what it waits for."""

    cuda_stream: int
    log: list[str] = field(default_factory=list, compare=False)
    device: str = "cuda:0"

    def wait_stream(self, other: Stream) -> None:
        self.log.append(f"{self.cuda_stream} waits for {other.cuda_stream}")


class Streams:
    """Stands in for the functions of torch.cuda."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.callers, self.trainers = Stream(1, self.log), Stream(2, self.log)
        self.current = self.callers

    @contextlib.contextmanager
    def use(self, stream: Stream) -> Iterator[None]:
        before, self.current = self.current, stream
        try:
            yield
        finally:
            self.current = before


@pytest.fixture
def streams() -> Iterator[Streams]:
    made = Streams()
    functions = {"current_stream": lambda device=None: made.current, "stream": made.use, "is_initialized": lambda: True}
    with mock.patch.multiple(torch.cuda, **functions):
        yield made


def optimizer_of(stream: Stream | None, is_elsewhere: bool) -> Any:
    """Returns a stand-in for a CrossBarrier optimizer, of which the functions under test are called."""
    made = SimpleNamespace(_stream=stream, _lock=threading.RLock(), update_overdue=lambda: None)
    made.is_trained_elsewhere = lambda: is_elsewhere
    made._as_trained = lambda: UpdatesInForward._as_trained(made)
    return made


def test_other_threads_update_on_the_stream_of_training(streams: Streams) -> None:
    with UpdatesInForward._as_trained(optimizer_of(streams.trainers, True)):
        assert streams.current is streams.trainers
        streams.log.append("update")
    assert streams.current is streams.callers
    assert streams.log == ["update", "1 waits for 2"]


@pytest.mark.parametrize(("has_stream", "is_elsewhere"), [(True, False), (False, True)])
def test_updates_stay_on_the_stream_of_the_caller(streams: Streams, has_stream: bool, is_elsewhere: bool) -> None:
    with UpdatesInForward._as_trained(optimizer_of(streams.trainers if has_stream else None, is_elsewhere)):
        assert streams.current is streams.callers
    assert streams.log == []


def test_step_notes_the_stream_of_training(streams: Streams) -> None:
    optimizer = mock.MagicMock()
    optimizer._closure.find.return_value = None
    optimizer._gradients.averaged = optimizer._gradients.is_tuning = False
    with mock.patch("gleaner.torch.cross_barrier.Pieces"):
        with streams.use(streams.trainers):
            UpdatesInForward.step(optimizer)
        assert optimizer._stream is streams.trainers
        with mock.patch.object(torch.cuda, "is_initialized", lambda: False):
            UpdatesInForward.step(optimizer)
        assert optimizer._stream is None, "the model is not on a GPU"


def test_copies_for_other_threads_stay_for_their_streams(streams: Streams) -> None:
    recorded: list[Stream] = []
    weight = torch.ones(3)
    state = {"weight": weight, "steps": 4}
    fakes = {"is_cuda": True, "record_stream": lambda _, stream: recorded.append(stream)}
    with mock.patch.multiple(torch.Tensor, create=True, **fakes):
        UpdatesInForward.complete(optimizer_of(streams.trainers, True), state)
    assert state["weight"] is not weight
    assert state["steps"] == 4
    assert streams.log == ["1 waits for 2"]
    assert recorded == [streams.callers]


def test_memory_is_recorded_only_for_another_stream(streams: Streams) -> None:
    recorded: list[Stream] = []
    tensor = SimpleNamespace(device=torch.device("cuda", 3), record_stream=recorded.append)
    memory = CudaMemory(tensor, tensor)
    assert memory.ordinal == 3
    assert memory.stream() == 1
    memory.waited()
    assert recorded == []
    with streams.use(streams.trainers):
        assert memory.stream() == 2, "that of the thread that asks"
        memory.waited()
    assert recorded == [streams.trainers] * 2
