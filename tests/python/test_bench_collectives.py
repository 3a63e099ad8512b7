"""Tests bench/collectives: its ratios, and real workers of two ranks on the loopback."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from conftest import ROOT, run_job

BENCH = ROOT / "bench"
sys.path.insert(0, str(BENCH))
from distributed import results  # noqa: E402
from wire import jobs, table  # noqa: E402


def round_of(begin: float, *seconds: float) -> dict[str, list[float]]:
    """Returns a rank's calls, of which each begins 10 s after the one before."""
    begins = [begin + 10 * number for number in range(len(seconds))]
    ends = [at + each for at, each in zip(begins, seconds)]
    return {"step_begins": begins, "step_ends": ends, "processor": [0.5] * len(seconds)}


def case_of(size: int, gloo: list[dict[str, list[float]]], gleaner: list[dict[str, list[float]]]) -> dict[str, Any]:
    return {"collective": "all_reduce", "bytes": size, "rounds": {"gloo": gloo, "gleaner": gleaner}, "missing": None}


def test_a_ratio_is_the_time_of_gloo_over_that_of_gleaner() -> None:
    calls = case_of(
        1 << 20, [round_of(0, 3, 3, 9), round_of(50, 2, 2, 2)], [round_of(100, 2, 1, 2), round_of(150, 2, 2, 2)]
    )
    entry = results.case_entry("here", [calls, calls], 1.0)
    assert entry["row"] == "here: all_reduce 1 MiB"
    assert entry["ratio"] == (1.5 + 1.0) / 2  # the medians of the rounds are 3 / 2 and 2 / 2
    assert entry["spread"] == pytest.approx(0.25 / 1.25)
    processor = {"gloo processor": 0.5, "gleaner processor": 0.5}
    assert entry["figures"] == {"gloo": 2.5, "gleaner": 2.0, **processor, "rounds": 2, "calls": 3}
    assert table.met(entry)


def test_small_calls_count_on_each_rank_and_large_ones_to_the_last_rank() -> None:
    for size, expected in ((4, 1.5), (results.SMALL, 3.0)):
        early = case_of(size, [round_of(0, 1)], [round_of(0, 1)])
        late = case_of(size, [round_of(1, 2)], [round_of(1, 2)])
        figures = results.case_entry("here", [early, late], 1.0)["figures"]
        assert (figures["gloo"], figures["gleaner"]) == (expected, expected)


def test_a_collective_that_gloo_lacks_has_no_ratio() -> None:
    case = {
        "collective": "reduce_scatter",
        "bytes": 4,
        "rounds": {"gleaner": [round_of(0, 1)]},
        "missing": "no support",
    }
    entry = results.case_entry("here", [case, case], 1.0)
    assert "no support" in entry["error"]
    assert "ratio" not in entry


def test_the_layer_takes_the_time_beyond_that_of_the_c_abi() -> None:
    times = {"torch": [50e-6] * 3 + [1.0], "abi": [20e-6] * 4}
    entry = results.layer_entry("here", "broadcast", times)
    assert entry["ratio"] == pytest.approx(30.0)
    assert table.met(entry)
    assert not table.met(results.layer_entry("here", "broadcast", {**times, "torch": [90e-6] * 4}))


def lines_of_worker(ranks: int, *arguments: str) -> list[dict[str, Any]]:
    worker = BENCH / "distributed" / "worker.py"
    done = run_job(worker, *arguments, workers=ranks, summers=0)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(line) for line in jobs.lines_of(done.stdout)]
    assert len(lines) == ranks
    return lines


def test_workers_call_both_backends_and_check_the_results() -> None:
    pytest.importorskip("torch")
    collectives = [
        "all_reduce",
        "all_reduce_replicas",
        "broadcast",
        "all_gather",
        "all_to_all_single",
        "reduce_scatter_tensor",
    ]
    cases = ",".join(f"{name}:65536" for name in collectives)
    found = results.entries("n=2 k=0", lines_of_worker(2, "--cases", cases, "--seconds", "0.1"))
    assert [entry["row"] for entry in found] == [f"n=2 k=0: {name} 64 KiB" for name in collectives]
    assert all(entry["ratio"] > 0 for entry in found[:5])  # Debian's Gloo has no reduce_scatter_tensor
    assert "| n=2 k=0: all_reduce 64 KiB | ≥ 1 |" in table.markdown(found)


def test_a_worker_alone_measures_the_python_layer() -> None:
    pytest.importorskip("torch")
    found = results.entries("here", lines_of_worker(1, "--layer-calls", "5"))
    names = ["all_reduce", "broadcast", "all_to_all_single"]
    assert [entry["row"] for entry in found] == [f"here: microseconds of the Python layer, {name}" for name in names]


def test_collectives_refuses_unknown_collectives_and_sizes() -> None:
    for flags in (["--collectives", "all_sum"], ["--sizes", "64kb"]):
        done = subprocess.run([BENCH / "collectives", *flags], capture_output=True, text=True)
        assert done.returncode == 2
        assert flags[1] in done.stderr
