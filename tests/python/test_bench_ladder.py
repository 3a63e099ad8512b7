"""Tests bench/ladder: its scale, its table, and real workers on each rung. Times are not tested."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import LIBRARY, ROOT, TIMEOUT, environment, require_build, run_job
from requirements import require_namespaces

sys.path.insert(0, str(ROOT / "bench"))
from training import ladder, traces
from training.ladder import BASELINE, PUBLISHED, RUNGS, Climb, Ladder
from training.traces import Layer, Trace
from wire.steps import Steps

SPARSE = list(RUNGS)[-1]


def test_published_ratios_are_those_of_the_tables() -> None:
    """The tables print ratios to the MPI column: the product with NCCL's, of two digits, is compared."""
    printed = {("alexnet", "P"): (3.4, 11.0), ("alexnet", "V"): (4.3, 26.9), ("resnet50", "V"): (1.9, 9.0)}
    for (model, cluster), (nccl, all_of_them) in printed.items():
        ratio = PUBLISHED[model][cluster].ratio(SPARSE)
        assert nccl * ratio == pytest.approx(all_of_them, rel=0.02)


def test_the_scale_follows_from_published_throughputs() -> None:
    """128 GPUs at 75,700 images/s take 216.4 ms for 128 images each, of which one GPU computes 76.6 ms."""
    assert PUBLISHED["alexnet"]["P"].waiting == pytest.approx(216.4 / 76.6 - 1, rel=1e-3)


def test_without_overlap_gradients_exist_at_the_end_of_backward() -> None:
    layers = (Layer("first", 1.0, 2.0, (("a", 4),)), Layer("last", 1.0, 3.0, (("b", 4),)))
    made = Trace("made up", "1gbit", layers).without_overlap()
    assert [each.backward for each in made.layers] == [0.0, 5.0]
    assert made.seconds == 7.0 and made.bytes == 8


def test_limits_of_rungs_have_their_bytes_and_their_overlap() -> None:
    layers = [Layer("first", 1.0, 2.0, (("a", 4),)), Layer("last", 1.0, 3.0, (("b", 4),))]
    found = [rung.limit(layers, 8.0) for rung in RUNGS.values()]
    # After 3 s of backward 2 s of halved bytes are sent while the first layer computes 2 s.
    assert found == pytest.approx([7 + 8, 7 + 4, 7 + 2, 7 + 2, 7 + 0.3])


@pytest.fixture
def results() -> dict[str, Any]:
    """Returns the results of three rounds of two rungs, as bench/ladder writes them."""
    made = Ladder("alexnet", "V", 2, "200mbit", 1.0, {BASELINE: Climb(6.0), SPARSE: Climb(2.0)})
    for cores, base, sparse in ((1.5, 6.0, 2.0), (2.0, 12.0, 3.0), (1.0, 6.0, 3.0)):
        for rung, took in ((BASELINE, base), (SPARSE, sparse)):
            line = {"step_begins": [0.0], "step_ends": [took], "sent_bytes": 3 << 20, "processor_seconds": took / 4}
            made.rungs[rung].add(Steps.of_ranks([line, line]), [line, line], cores)
    machine = {"processors": 2, "model": "made up", "kernel": "6.1", "commit": "abc"}
    return {"machine": machine, "steps": 1, "rounds": 3, "ladders": [made.as_json()]}


def test_ratios_are_of_one_round(results: dict[str, Any]) -> None:
    assert results["ladders"][0]["rungs"][1]["ratio"] == 3.0
    table = ladder.markdown(results["ladders"], 2)
    assert "| baseline: communication / computation | 5.00 (5.19) |" in table
    assert f"| {SPARSE} | 3.00 ± 1.00 (6.31) |" in table
    assert "| MiB sent in a step, by rung | 6 6 |" in table
    assert "by all programs, at most | 2.00 of 2 |" in table


def test_documents_get_the_table_and_the_plot(results: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    file, document = tmp_path / "ladder.json", tmp_path / "page.md"
    file.write_text(json.dumps(results))
    document.write_text("before\n<!-- ladder: by bench/ladder -->\nold\n<!-- end of ladder -->\nafter\n")
    command = [sys.executable, str(ROOT / "bench" / "ladder"), "--read", str(file), "--docs", str(document)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr
    filled = document.read_text()
    assert ladder.markdown(results["ladders"], 2) in filled and "![ladder](plots/ladder.svg)" in filled
    assert filled.startswith("before\n") and filled.endswith("after\n") and "old" not in filled
    assert (tmp_path / "plots" / "ladder.svg").read_text().count("+ sparse communication") == 1


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.json"
    made = [Layer(f"l{i}", 0.002, 0.004, ((f"l{i}.bias", 40), (f"l{i}.weight", 400_000))) for i in range(3)]
    traces.save(Trace("made up", "1gbit", tuple(made)), path)
    return path


@pytest.mark.parametrize("rung", RUNGS)
def test_workers_train_on_each_rung(small: Path, rung: str) -> None:
    pytest.importorskip("torch")
    worker = ROOT / "bench" / "training" / "worker.py"
    flags = ("--trace", str(small), "--steps", "3", *RUNGS[rung].flags)
    done = run_job(worker, "barrier", *flags, workers=2, flags=("--no-prefix",))
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [len(line["step_ends"]) for line in lines] == [3, 3]
    assert all(line["processor_seconds"] > 0 for line in lines)


@pytest.mark.long
def test_sparse_communication_sends_fewer_bytes(tmp_path: Path) -> None:
    require_namespaces()
    require_build()
    pytest.importorskip("torch")
    file = tmp_path / "ladder.json"
    command = [sys.executable, str(ROOT / "bench" / "ladder"), "--models", "resnet50", "--clusters", "V"]
    command += ["--rungs", "wire|sparse", "--rate", "1gbit", "--steps", "1", "--rounds", "1", "--runs", "1"]
    variables = environment(GLEANER_BUILD=str(LIBRARY.parents[1]))
    done = subprocess.run(
        [*command, "--out", str(file)], capture_output=True, text=True, timeout=TIMEOUT, env=variables
    )
    assert done.returncode == 0, done.stderr
    sent = [rung["sent_bytes"] for rung in json.loads(file.read_text())["ladders"][0]["rungs"]]
    assert sent[1] == pytest.approx(0.5 * sent[0], rel=0.1)
    assert sent[2] == pytest.approx(0.15 * sent[1], rel=0.1)


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--models", "lenet"], "there is no model lenet; choose among alexnet, resnet50"),
        (["--clusters", "X"], "there is no cluster X; choose among P, V"),
        (["--workers", "1"], "--workers must be at least 2"),
        (["--rate", "fast"], "invalid rate value: 'fast'"),
        (["--steps", "0"], "invalid positive value: '0'"),
    ],
)
def test_bad_flags_are_refused(flags: list[str], told: str) -> None:
    command = [sys.executable, str(ROOT / "bench" / "ladder"), *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert told in done.stderr
