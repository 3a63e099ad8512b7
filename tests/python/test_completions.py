"""Tests Completions, with a stand-in for the session whose requests the test ends."""

from __future__ import annotations

import contextlib
import queue
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import ROOT, TIMEOUT

sys.path.insert(0, str(ROOT / "comm-lib" / "python"))
from gleaner.completions import Completions
from gleaner.errors import GleanerError


class FakeSession:
    """Has the functions of gleaner.Session that Completions calls."""

    def __init__(self) -> None:
        self.ended: queue.Queue[int] = queue.Queue()  # handles of requests that are done
        self.waits: list[float] = []
        self.errors: dict[int, Exception] = {}  # of synchronize(), by handle

    def next_done(self, timeout: float) -> int | None:
        try:
            return self.ended.get(timeout=timeout)
        except queue.Empty:
            return None

    def synchronize(self, handle: int) -> str:
        if handle in self.errors:
            raise self.errors[handle]
        return f"result {handle}"

    def add_wait(self, seconds: float) -> None:
        self.waits.append(seconds)


@pytest.fixture
def session() -> FakeSession:
    return FakeSession()


@pytest.fixture
def completions(session: FakeSession) -> Iterator[Completions]:
    made = Completions(session)
    yield made
    made.close()


def start(completions: Completions, handle: int) -> queue.Queue[str]:
    """Starts a request; returns a queue that gets its result."""
    results: queue.Queue[str] = queue.Queue()
    completions.on_done(lambda: handle, done=results.put, failed=lambda error: results.put(str(error)))
    return results


def test_results_are_passed_to_the_callbacks_of_their_requests(session: FakeSession, completions: Completions) -> None:
    one, two = start(completions, 1), start(completions, 2)
    session.ended.put(2)
    assert two.get(timeout=TIMEOUT) == "result 2"
    completions.close()
    assert "session was closed" in one.get(timeout=TIMEOUT)


def test_a_wait_counts_until_the_last_request_is_done(session: FakeSession, completions: Completions) -> None:
    one, two = start(completions, 1), start(completions, 2)
    completions.count_wait()
    session.ended.put(1)
    one.get(timeout=TIMEOUT)
    assert session.waits == [], "request 2 is outstanding"
    session.ended.put(2)
    two.get(timeout=TIMEOUT)
    assert len(session.waits) == 1
    assert session.waits[0] >= 0
    three = start(completions, 3)
    session.ended.put(3)
    three.get(timeout=TIMEOUT)
    assert len(session.waits) == 1, "the program has not waited for request 3"


def test_a_program_does_not_wait_for_requests_that_are_done(session: FakeSession, completions: Completions) -> None:
    one = start(completions, 1)
    session.ended.put(1)
    one.get(timeout=TIMEOUT)
    completions.count_wait()
    two = start(completions, 2)
    session.ended.put(2)
    two.get(timeout=TIMEOUT)
    assert session.waits == []


CUDA_ERROR = RuntimeError("CUDA error: an illegal memory access was encountered")


@contextlib.contextmanager
def failing_stream() -> Iterator[None]:
    raise CUDA_ERROR
    yield


def fail(result: Any) -> None:
    raise CUDA_ERROR


@pytest.mark.parametrize("place", ["synchronize", "within", "done"])
def test_errors_of_the_framework_end_only_their_request(
    session: FakeSession, completions: Completions, place: str
) -> None:
    if place == "synchronize":
        session.errors[1] = CUDA_ERROR
    errors: queue.Queue[GleanerError] = queue.Queue()
    within = failing_stream if place == "within" else contextlib.nullcontext
    results: queue.Queue[str] = queue.Queue()
    completions.on_done(lambda: 1, fail if place == "done" else results.put, errors.put, within)
    next_results = start(completions, 2)
    session.ended.put(1)
    session.ended.put(2)
    assert next_results.get(timeout=TIMEOUT) == "result 2", "the thread goes on"
    error = errors.get(timeout=TIMEOUT)
    assert isinstance(error, GleanerError)
    assert str(CUDA_ERROR) in str(error)
    assert results.empty()


def test_error_of_a_start_reaches_the_caller(session: FakeSession, completions: Completions) -> None:
    def start_fails() -> int:
        raise CUDA_ERROR

    with pytest.raises(RuntimeError, match="illegal memory access"):
        completions.on_done(start_fails, done=fail, failed=fail)
    after = start(completions, 1)
    session.ended.put(1)
    assert after.get(timeout=TIMEOUT) == "result 1"
