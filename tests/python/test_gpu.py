"""Tests push_pulls of the memory of a GPU in real jobs, over the double of CUDA's driver (tests/doubles/cuda)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from conftest import BUILD, TIMEOUT, assert_passed, checks_of, job, read_until, run_job
from test_trace import check_steps, slices, trace

PROGRAM = "gpu_checks.py"
DOUBLE = {"LD_LIBRARY_PATH": str(BUILD / "tests" / "doubles")}
SHAPES = [(1, 0, 1), (2, 1, 1), (3, 0, 1), (1, 0, 2), (2, 1, 2)]  # workers, summers and local ranks


@pytest.fixture(scope="module", params=SHAPES, ids=lambda shape: "-".join(map(str, shape)))
def outcome(request: pytest.FixtureRequest) -> tuple[subprocess.CompletedProcess[str], int]:
    workers, summers, local_ranks = request.param
    done = run_job(PROGRAM, workers=workers, summers=summers, local_ranks=local_ranks, variables=DOUBLE)
    return done, workers * local_ranks


@pytest.mark.parametrize("check", checks_of(PROGRAM))
def test_gpu(outcome: tuple[subprocess.CompletedProcess[str], int], check: str) -> None:
    assert_passed(outcome[0], check, ranks=outcome[1])


def test_a_trace_has_the_copies(tmp_path: Path) -> None:
    stop, file = tmp_path / "stop", tmp_path / "trace.json"
    with job(tmp_path, 2, 1, "--deadline", "100000") as going:
        workers = [going.start_worker(i, "changing.py", str(stop), "0", "gpu", **DOUBLE) for i in range(2)]
        for worker in workers:
            read_until(worker, "summing")
        taken = trace(going, "--steps", "5", "--json", "-o", str(file))
        text = trace(going, "--steps", "5").stdout
        stop.touch()
        for worker in workers:
            assert worker.wait(TIMEOUT) == 0
    assert taken.returncode == 0, taken.stderr
    report = json.loads(taken.stdout)
    check_steps(report)
    for stage in ("copy out", "copy in"):
        assert sum(step["stages"][stage] for step in report["steps"]) > 0, report["steps"]
        assert any(part["stage"] == stage for step in report["steps"] for part in step["path"])
        assert stage in text
    assert "reduce" not in text and "broadcast" not in text
    merged = json.loads(file.read_text())
    for track in ("7 copy out", "8 copy in"):
        assert sum(copy["dur"] for copy in slices(merged, track)) > 0, track


def test_a_trace_has_the_copies_of_local_ranks(tmp_path: Path) -> None:
    stop, file = tmp_path / "stop", tmp_path / "trace.json"
    stop.touch()  # the program ends after its first step
    flags = ("--trace", str(file), "--trace-seconds", str(TIMEOUT))
    ended = run_job("changing.py", str(stop), "0", "gpu", local_ranks=2, flags=flags, variables=DOUBLE)
    assert ended.returncode == 0, ended.stderr
    merged = json.loads(file.read_text())
    for track in ("7 copy out", "8 copy in"):
        assert {copy["pid"] for copy in slices(merged, track)} == {1, 2, 3, 4}, track


def test_sums_stay_right_while_summers_come_and_go(tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    with job(tmp_path, 3, 2, "--deadline", "100000") as going:
        log = going.log_of(going.coordinator)
        workers = [going.start_worker(i, "changing.py", str(stop), "0", "gpu", **DOUBLE) for i in range(3)]
        for worker in workers:
            read_until(worker, "summing")
        for summer in list(going.summers):
            summer.kill()
            going.wait_for_loss(summer)
        going.start_summer()
        log.wait_for("1 summer,")
        stop.touch()
        for worker in workers:
            _, err = worker.communicate(timeout=TIMEOUT)
            assert worker.returncode == 0, err
