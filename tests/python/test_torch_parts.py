"""Tests parts of gleaner.torch that need no job: claims.py, pass_count.py and recycled.py."""

from __future__ import annotations

import gc
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "comm-lib" / "python"))
torch = pytest.importorskip("torch")

from gleaner.errors import FailedPreconditionError, InvalidArgumentError  # noqa: E402
from gleaner.torch.claims import Claims  # noqa: E402
from gleaner.torch.pass_count import PassCount  # noqa: E402
from gleaner.torch.passes import _Pass  # noqa: E402
from gleaner.torch.recycled import RecycledTensors  # noqa: E402


def test_memory_is_claimed_once() -> None:
    memory, claims = torch.zeros(100), Claims()
    assert claims.claim(memory[20:40], "middle") is None
    assert claims.claim(memory[40:60], "behind") is None
    assert claims.claim(memory[:20], "front") is None
    for begin, end in ((39, 41), (20, 21), (0, 100), (10, 90)):
        assert claims.claim(memory[begin:end], "another") in ("front", "middle", "behind")
    assert claims.claim(memory[39:40], "another") == "middle"
    assert claims.claim(memory[30:30], "nothing") is None
    claims.release("middle")
    claims.release("middle")
    assert claims.claim(memory[25:30], "another") is None
    claims.clear()
    assert claims.claim(memory, "all") is None


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float64])
def test_memory_is_reused_when_no_tensor_uses_it(kind: torch.dtype) -> None:
    like = torch.zeros(3, 50, dtype=kind)
    tensors = RecycledTensors([like])
    first = tensors.empty_like(like)
    place = first.data_ptr()
    assert (first.shape, first.dtype, first.is_contiguous()) == (like.shape, kind, True)
    alias = first[1:].detach()
    del first
    gc.collect()
    second = tensors.empty_like(like)
    assert second.data_ptr() != place, "a tensor still uses a part of the memory"
    del alias
    assert tensors.empty_like(like).data_ptr() == place


def test_memory_is_kept_for_at_most_the_number_of_tensors() -> None:
    like = torch.zeros(1000)
    tensors = RecycledTensors([like, torch.zeros(10, 100), torch.zeros(0)])
    made = [tensors.empty_like(like) for _ in range(5)]
    places = {tensor.data_ptr() for tensor in made}
    del made
    gc.collect()
    again = [tensors.empty_like(like)]
    assert sum(map(len, tensors._blocks.values())) == 1, "two blocks were kept, and one of them is used again"
    again.append(tensors.empty_like(like))
    assert {tensor.data_ptr() for tensor in again} <= places
    assert tensors.empty_like(torch.zeros(7)).shape == (7,)
    assert tensors.empty_like(torch.zeros(0)).shape == (0,)


def parameters_of(*required: bool) -> list[torch.nn.Parameter]:
    return [torch.nn.Parameter(torch.zeros(1), requires_grad=each) for each in required]


def functions_called_by_freeing(objects: list[object]) -> list[str]:
    """Frees the objects of the list. Returns the Python functions that run: an interrupt that came there would be
    lost."""
    called: list[str] = []
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
    try:
        objects.clear()
    finally:
        sys.setprofile(None)
    return called


def test_freeing_a_tensor_runs_no_python_function() -> None:
    like = torch.zeros(100, 100)
    assert functions_called_by_freeing([RecycledTensors([like]).empty_like(like)]) == []


class Participant:
    number, parameters, failed = 1, (), False

    def start_averaging(self, inner: bool) -> bool:
        return True

    def finish_averaging(self) -> None:
        pass

    def fail_pass(self) -> None:
        self.failed = True


def test_freeing_a_pass_that_has_ended_runs_no_python_function() -> None:
    participant = Participant()
    ended = _Pass()
    ended.reached.append(participant)
    ended()
    passes = [ended]
    del ended
    assert functions_called_by_freeing(passes) == []
    assert not participant.failed


def test_a_pass_that_is_freed_without_a_call_has_failed() -> None:
    participant = Participant()
    failed = _Pass()
    failed.reached.append(participant)
    del failed
    assert participant.failed


def test_passes_of_a_step_are_counted() -> None:
    count = PassCount(3, parameters_of(True))
    for _ in range(2):
        assert [count.is_last, count.end_pass(inner=False)] == [False, False]
        assert [count.is_last, count.end_pass(inner=False)] == [False, False]
        assert [count.is_last, count.end_pass(inner=False)] == [True, True]
        count.restart()
    with pytest.raises(InvalidArgumentError, match="at least 1, not 0"):
        PassCount(0, [])


def test_a_nested_pass_counts_if_it_has_reached_all_parameters() -> None:
    first, second, frozen = parameters_of(True, True, False)
    count = PassCount(2, [first, second, frozen])
    count.reach(first)
    assert not count.end_pass(inner=True)
    with pytest.raises(FailedPreconditionError, match="use_reentrant=False"):
        count.check_countable()
    assert not count.is_last, "the end of an inner pass is not counted while the outer pass may continue"
    count.reach(second)
    assert not count.end_pass(inner=True)
    count.check_countable()
    assert count.is_last
    count.reach(second)
    assert count.end_pass(inner=False), "only nested passes have to reach all parameters"
    once = PassCount(1, [first])
    assert once.end_pass(inner=True)
    once.check_countable()


def test_a_failed_pass_is_an_error_if_gradients_were_sent() -> None:
    count = PassCount(1, parameters_of(True))
    count.fail_pass(has_sent=False)
    count.check_not_failed()
    count.fail_pass(has_sent=True)
    with pytest.raises(FailedPreconditionError, match="were sent"):
        count.check_not_failed()
    count.reset()
    count.check_not_failed()
