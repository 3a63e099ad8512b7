"""Where gradients and their averages may lie: gleaner.torch.claims and gleaner.torch.recycled."""

from __future__ import annotations

import gc

import pytest

torch = pytest.importorskip("torch")

from gleaner.torch.claims import Claims  # noqa: E402
from gleaner.torch.recycled import RecycledTensors  # noqa: E402


def test_memory_is_claimed_once() -> None:
    memory, claims = torch.zeros(100), Claims()
    assert claims.make(memory[20:40], "middle") is None
    assert claims.make(memory[40:60], "behind") is None
    assert claims.make(memory[:20], "front") is None
    for begin, end in ((39, 41), (20, 21), (0, 100), (10, 90)):
        assert claims.make(memory[begin:end], "another") in ("front", "middle", "behind")
    assert claims.make(memory[39:40], "another") == "middle"
    assert claims.make(memory[30:30], "nothing") is None
    claims.give_up("middle")
    claims.give_up("middle")
    assert claims.make(memory[25:30], "another") is None
    claims.clear()
    assert claims.make(memory, "all") is None


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float64])
def test_memory_comes_back_when_nobody_has_it(kind: torch.dtype) -> None:
    like = torch.zeros(3, 50, dtype=kind)
    tensors = RecycledTensors([like])
    first = tensors.empty_like(like)
    place = first.data_ptr()
    assert (first.shape, first.dtype, first.is_contiguous()) == (like.shape, kind, True)
    alias = first[1:].detach()
    del first
    gc.collect()
    second = tensors.empty_like(like)
    assert second.data_ptr() != place, "somebody has a part of it"
    del alias
    assert tensors.empty_like(like).data_ptr() == place


def test_no_more_is_kept_than_there_are_tensors() -> None:
    like = torch.zeros(1000)
    tensors = RecycledTensors([like, torch.zeros(10, 100), torch.zeros(0)])
    made = [tensors.empty_like(like) for _ in range(5)]
    places = {tensor.data_ptr() for tensor in made}
    del made
    gc.collect()
    assert sum(map(len, tensors._blocks.values())) == 2
    again = [tensors.empty_like(like) for _ in range(2)]
    assert {tensor.data_ptr() for tensor in again} <= places
    assert tensors.empty_like(torch.zeros(7)).shape == (7,)
    assert tensors.empty_like(torch.zeros(0)).shape == (0,)
