"""Tests `gleaner plan --compute-time` and `--prices`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_plan import plan, run

FLEET = ["--workers", 8, "--summers", 8, "--bandwidth", "25Gbit", "--bytes", "100MB"]


def ways(*flags) -> dict[str, dict]:
    return {way["strategy"]: way for way in plan(*flags)["hiding"]}


@pytest.mark.parametrize(
    ("gigabits", "both_ways"),
    [  # Luo Table 2.1: M/T, and the bandwidths of CC, CS, NCC and NCS in Gbit/s, both directions together
        (8.74, [122, 31, 140, 17]),
        (3.125, [44, 11, 50, 6]),
        (2.875, [40, 10, 46, 6]),
        (88, [1232, 308, 1408, 176]),
    ],
    ids=["resnet-269", "inception", "googlenet", "alexnet"],
)
def test_table_2_1(gigabits: float, both_ways: list[int]) -> None:
    compute = f"{0.8 / gigabits * 1e9:.0f}ns"  # of 100 MB, which are 0.8 Gbit
    found = ways(*FLEET, "--compute-time", compute)
    needs = [2 * found[name]["server_bandwidth"] / 1e9 for name in ("CC", "CS", "NCC", "NCS")]
    assert [round(need) for need in needs] == both_ways


def test_summers_and_schedules_need_their_bounds() -> None:
    found = ways(*FLEET[:2], "--summers", 4, *FLEET[4:], "--compute-time", "50ms")
    each = 0.8e9 / 0.05
    assert found["summers"]["worker_bandwidth"] == pytest.approx(112 / (64 + 32 - 8) * each, rel=1e-6)
    assert found["ring"]["worker_bandwidth"] == pytest.approx(1.75 * each, rel=1e-6)
    assert found["summers"]["communication_seconds"] == pytest.approx(112 / 88 * 0.8 / 25, rel=1e-6)
    assert found["summers"]["hidden"]
    assert not found["NCC"]["hidden"]
    assert found["NCC"]["step_seconds"] == found["NCC"]["communication_seconds"] == pytest.approx(8 * 0.8 / 25)
    assert "price" not in found["ring"]


def test_prices(tmp_path: Path) -> None:
    file = tmp_path / "prices.json"
    file.write_text(json.dumps({"worker": 10, "summer": 1, "nic": 2, "switch_port": 1, "cable": 1, "hours": 1}))
    found = ways(*FLEET, "--compute-time", "50ms", "--prices", file)
    port = 4 + 6
    assert found["ring"]["price"] == 8 * (10 + port)
    assert found["NCC"]["price"] == 8 * (10 + port) + 1 + port
    assert found["summers"]["price"] == 8 * (10 + port) + 8 * (1 + port)
    for way in found.values():
        assert way["step_price"] == pytest.approx(way["price"] * way["step_seconds"] / 3600)
        assert way["throughput_per_1000"] == pytest.approx(1000 / way["price"] / way["step_seconds"])
    text = run(*FLEET, "--compute-time", "50ms", "--prices", file, "-o", "explain").stdout
    assert "Cheapest    step: " in text
    assert "Hidden      behind computation: " in text
    assert "STEPS/S PER 1000 $" in text


def test_the_table_says_what_hides() -> None:
    text = run(*FLEET, "--compute-time", "50ms").stdout
    rows = {line.split()[0]: line.split()[-1] for line in text.splitlines() if line.endswith((" yes", " no"))}
    assert rows["NCS"] == "yes"
    assert rows["NCC"] == "no"
    assert "hiding" not in plan(*FLEET)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--compute-time", "fast"], "--compute-time: 'fast' is not a duration"),
        (["--compute-time", "0s"], "is not a duration above 0"),
        (["--compute-time", "inf"], "is not a duration above 0"),
        (["--prices", "good"], "--prices: give --compute-time"),
        (["--compute-time", "1s", "--prices", "missing"], "--prices: "),
        (["--compute-time", "1s", "--prices", "unknown"], "the field 'gpu' is unknown"),
        (["--compute-time", "1s", "--prices", "negative"], "the price of a worker is -1"),
        (["--compute-time", "1s", "--prices", "list"], "expected a JSON object"),
        (["--compute-time", "1s", "--prices", "text"], "worker is no number"),
        (["--compute-time", "1s", "--local-ranks", 2], "--compute-time and --prices: only"),
        (["--compute-time", "1s", "--collective", "all-gather"], "--compute-time and --prices: only"),
        (["--compute-time", "1s", "--topology", "star:16"], "--compute-time: give --prices, too"),
    ],
)
def test_mistakes(tmp_path: Path, flags: list, message: str) -> None:
    texts = {"good": '{"worker": 1}', "unknown": '{"gpu": 1}', "negative": '{"worker": -1}', "list": "[]"}
    texts["text"] = '{"worker": "much"}'
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    names = {*texts, "missing"}
    result = run(*FLEET, *(tmp_path / flag if flag in names else flag for flag in flags))
    assert result.returncode in (1, 2)
    assert message in result.stderr
    assert result.stdout == ""
