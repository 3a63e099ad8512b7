"""Tests the choice of the threshold of packs against cases that are computed by hand, and its times of gradients."""

from __future__ import annotations

import math
import sys
import time
from types import SimpleNamespace

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "comm-lib" / "python"))
torch = pytest.importorskip("torch")

from gleaner.torch.fusion_model import Choice, Costs, Gradient, choose, exchange_seconds  # noqa: E402
from gleaner.torch.readiness import Readiness  # noqa: E402
from gleaner.torch.slots import Slot  # noqa: E402

KIB = 1 << 10
# A gradient each 10 ms, whose bytes take 5 ms.
EVERY_10_MS = [Gradient(64 * KIB, number * 0.010, "fp32") for number in range(8)]
BYTES_PER_SECOND = 64 * KIB / 0.005


def test_without_delay_packs_only_wait() -> None:
    choice = choose(EVERY_10_MS, Costs(0, BYTES_PER_SECOND))
    assert choice.fusion_bytes is None
    assert choice.seconds == choice.seconds_without_packs == pytest.approx(0.075), "5 ms after the last gradient"


def test_with_a_long_delay_one_message_is_best() -> None:
    choice = choose(EVERY_10_MS, Costs(1, BYTES_PER_SECOND))
    assert choice.fusion_bytes == math.inf
    assert choice.seconds == pytest.approx(0.070 + 1 + 0.040)
    assert choice.seconds_without_packs == pytest.approx(8 * 1.005)


@pytest.mark.parametrize(
    ("fusion_bytes", "seconds"),
    [
        (None, 8 * 0.015),
        (64 * KIB, 0.090),  # pairs, ready at 10, 30, 50 and 70 ms, of 20 ms each
        (128 * KIB, 0.095),  # three ready at 20 ms until 45, three ready at 50 until 75, two until 95
        (256 * KIB, 0.100),  # five ready at 40 ms until 75, three until 100
        (math.inf, 0.120),  # all ready at 70 ms
    ],
)
def test_packs_of_a_medium_delay(fusion_bytes: float | None, seconds: float) -> None:
    assert exchange_seconds(EVERY_10_MS, fusion_bytes, Costs(0.010, BYTES_PER_SECOND)) == pytest.approx(seconds)


def test_a_medium_delay_wants_packs_that_overlap() -> None:
    assert choose(EVERY_10_MS, Costs(0.010, BYTES_PER_SECOND)) == Choice(
        64 * KIB, pytest.approx(0.090), pytest.approx(0.120)
    )


def test_copies_delay_the_gradients_behind_them() -> None:
    costs = Costs(0.010, BYTES_PER_SECOND, copied_per_second=BYTES_PER_SECOND)
    assert exchange_seconds(EVERY_10_MS, 64 * KIB, costs) == pytest.approx(0.130), "pairs at 20, 50, 80 and 110 ms"
    assert choose(EVERY_10_MS, costs).fusion_bytes is None


def test_sending_delays_the_gradients_behind_it() -> None:
    costs = Costs(0, BYTES_PER_SECOND, send_seconds=0.010)
    assert choose(EVERY_10_MS, costs) == Choice(
        256 * KIB,
        pytest.approx(0.105),  # five gradients sent from 50 ms on, three from 90 ms on
        pytest.approx(0.155),  # eight, the last one from 70 + 80 ms on
    )


def test_large_gradients_go_alone_behind_the_open_pack() -> None:
    gradients = [Gradient(10, 0, "a"), Gradient(500, 0.1, "a"), Gradient(10, 0.2, "a")]
    assert exchange_seconds(gradients, 100, Costs(1, 1000)) == pytest.approx(0.1 + 1 + 0.5 + 1 + 0.02)


def test_gradients_of_two_kinds_share_no_pack() -> None:
    gradients = [Gradient(10, 0, kind) for kind in "abab"]
    assert exchange_seconds(gradients, math.inf, Costs(1, 1000)) == pytest.approx(2 * (1 + 0.02))


def test_a_small_gain_is_not_worth_packs() -> None:
    gradients = [Gradient(64 * KIB, 0, "a"), Gradient(64 * KIB, 0, "a")]
    for message_seconds, fusion_bytes in ((0.1, None), (0.2, 64 * KIB)):  # of 2 s for all bytes
        assert choose(gradients, Costs(message_seconds, 64 * KIB)).fusion_bytes == fusion_bytes


def test_no_gradients_need_no_packs() -> None:
    assert choose([], Costs(1, 1000)).fusion_bytes is None


class Clock:
    """Stands for time.perf_counter()."""

    def __init__(self, *times: float) -> None:
        self._times = iter(times)

    def __call__(self) -> float:
        return next(self._times)


def slots_on(device: str, count: int) -> list[Slot]:
    return [Slot(SimpleNamespace(device=torch.device(device)), "", 0, "") for _ in range(count)]


def test_times_of_gradients_leave_out_the_sends_before(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = slots_on("cpu", 3)
    readiness = Readiness()
    monkeypatch.setattr(time, "perf_counter", Clock(0, 5, 7, 10, 20, 20))  # sends take 5, 3 and 0 seconds
    for slot in (second, first, third):
        readiness.record(slot, lambda _: None)
    readiness.end_round()
    assert list(readiness.seconds().items()) == [(second, 0), (first, 2), (third, 12)]
    assert readiness.send_seconds == 8 / 3


class Event:
    """Stands for a CUDA event, as there may be no GPU. The n-th one is reached at the n-th time."""

    milliseconds = iter((1000, 1500, 1200))

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing

    def record(self, stream: object) -> None:
        self.at = next(Event.milliseconds)

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, end: Event) -> float:
        return end.at - self.at


def test_times_of_gradients_on_a_gpu_are_those_of_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: None)
    readiness, slots = Readiness(), slots_on("cuda:0", 3)
    for slot in slots:
        readiness.record(slot, lambda _: None)
    readiness.end_round()
    assert list(readiness.seconds().values()) == [0, 0.5, 0.5], "streams may end in another order"
    assert readiness.send_seconds == 0
