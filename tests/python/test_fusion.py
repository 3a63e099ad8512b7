"""Tests packs of gradients: their layout, their pool, their streams, and ranks that differ in them."""

from __future__ import annotations

import math
import re
import sys

import pytest
from conftest import ROOT, run_job

sys.path.insert(0, str(ROOT / "comm-lib" / "python"))
torch = pytest.importorskip("torch")

from gleaner.torch.packs import Fusion, strides_of  # noqa: E402
from gleaner.torch.pool import Pool  # noqa: E402
from gleaner.torch.streams import StreamOrder  # noqa: E402


def parameters(*sizes: int, kind: torch.dtype) -> list[torch.nn.Parameter]:
    return [torch.nn.Parameter(torch.zeros(size, dtype=kind)) for size in sizes]


def halves(*sizes: int) -> list[torch.nn.Parameter]:
    """Returns parameters of float16 with these sizes in bytes."""
    return parameters(*(size // 2 for size in sizes), kind=torch.float16)


def test_a_pack_is_closed_when_it_exceeds_the_threshold() -> None:
    packs = Fusion.of(halves(80, 40, 400, 60, 30, 20, 90), 100).packs
    assert packs == ((0, 1), (3, 4, 5)), "as in the example of packs.py"


def test_a_pack_as_large_as_the_threshold_stays_open() -> None:
    assert Fusion.of(halves(50, 50, 2, 50), 100).packs == ((0, 1, 2),)


@pytest.mark.parametrize("fusion_bytes", [322, 10**12, math.inf])
def test_above_the_bytes_of_the_model_there_is_one_pack(fusion_bytes: float) -> None:
    fusion = Fusion.of(halves(80, 40, 200, 2), fusion_bytes)
    assert fusion.packs == ((0, 1, 2, 3),)
    assert fusion.fingerprint == Fusion.of(halves(80, 40, 200, 2), math.inf).fingerprint


def test_packs_have_one_type() -> None:
    mixed = [*halves(4), *parameters(1, kind=torch.float64), *halves(6), *parameters(1, 1, kind=torch.float64)]
    assert Fusion.of(mixed, 8).packs == ((0, 2), (1, 3))


def test_frozen_parameters_are_in_no_pack() -> None:
    some = halves(4, 4, 4)
    some[1].requires_grad = False
    assert Fusion.of(some, 100).packs == ((0, 2),)


def test_fingerprints_tell_packs_apart() -> None:
    images = [torch.nn.Parameter(torch.zeros(2, 3, 4, 5)) for _ in range(3)]
    images[2].data = images[2].data.to(memory_format=torch.channels_last)
    fusions = [
        Fusion.of(halves(4, 4, 4), None),
        Fusion.of(halves(4, 4, 4), 6),
        Fusion.of(halves(4, 4, 4), math.inf),
        Fusion.of(halves(4, 4, 6), math.inf),
        Fusion.of(parameters(2, 2, 2, kind=torch.bfloat16), math.inf),
        Fusion.of(images[:2], math.inf),
        Fusion.of(images[1:], math.inf),
    ]
    assert len({each.fingerprint for each in fusions}) == len(fusions)
    assert fusions[0].fingerprint == 0


def test_places_of_a_pool_fill_it() -> None:
    images = torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last)
    repeated = torch.zeros(3, 1).expand(3, 4)
    made = [torch.zeros(3), torch.zeros(()), torch.zeros(0, 2), images, repeated.t(), torch.zeros(8, 8)[:, ::2]]
    pool = Pool(made)
    for number, (place, like) in enumerate(zip(pool.places, made)):
        assert place.shape == like.shape
        assert place.stride() == strides_of(like)
        place.fill_(number)
    assert pool.places[3].stride() == images.stride()
    assert pool.memory.tolist() == [float(number) for number, like in enumerate(made) for _ in range(like.numel())]
    assert pool.part(1, 3).tolist() == [1.0] + [3.0] * 120


class Stream:
    """Stands for a CUDA stream, as there may be no GPU. It records for which streams it waits."""

    def __init__(self) -> None:
        self.waits_for: list[Stream] = []

    def record_event(self, event: Stream | None) -> Stream:
        return self

    def wait_event(self, event: Stream) -> None:
        self.waits_for.append(event)


def test_a_stream_follows_others_that_used_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = Stream(), Stream(), Stream()
    order = StreamOrder(torch.device("cuda", 0))
    for stream in (first, second, first):
        monkeypatch.setattr(torch.cuda, "current_stream", lambda device, stream=stream: stream)
        order.join()
    order.follow_all()
    assert first.waits_for == [second]
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: third)
    order.follow_all()
    assert third.waits_for == [first, second]


@pytest.mark.parametrize("wrap", ["DistributedOptimizer", "CrossBarrier"])
def test_ranks_with_other_thresholds_get_an_error(wrap: str) -> None:
    assert_told(wrap, "bytes", "fusion_bytes is 1000 on rank 0 and None on rank 1; pass the same fusion_bytes")


def test_a_rank_without_auto_gets_an_error() -> None:
    assert_told("DistributedOptimizer", "auto", "fusion_bytes is 'auto' on rank 0 and None on rank 1")


def test_ranks_with_other_frozen_parameters_get_an_error() -> None:
    wanted = "rank 0 and rank 1 have different packs .* fusion_bytes of 1000: .* freeze the same parameters"
    assert_told("DistributedOptimizer", "frozen", wanted)


def test_a_rank_that_joins_with_another_threshold_gets_an_error() -> None:
    assert_told("DistributedOptimizer", "joins", "fusion_bytes is 1000 on rank 0 and None on rank 1")


@pytest.mark.parametrize(
    ("way", "wanted"),
    [
        ("dense", "share of sparsity is 0.7 on rank 0 and None on rank 1"),
        ("chunks", "send different chunks with the same share of sparsity: pass the same Sparsity on all ranks"),
    ],
)
def test_ranks_that_send_different_chunks_get_an_error(way: str, wanted: str) -> None:
    assert_told("DistributedOptimizer", way, wanted)


def assert_told(wrap: str, way: str, wanted: str) -> None:
    done = run_job("fusion_differs.py", wrap, way, workers=3)
    assert len(re.findall(rf"rank [012]: .*{wanted}", done.stdout)) == 3, done.stdout + done.stderr
