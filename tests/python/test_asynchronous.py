"""Tests asynchronous training: no rank waits for another, and every step counts once even if summers are killed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import TIMEOUT, job, read_until, run_job

pytest.importorskip("torch")

WORKERS = 3
STEPS = 100


def ends(output: str) -> list[dict[str, Any]]:
    return [json.loads(line[line.index("{") :]) for line in output.splitlines() if "{" in line]


def assert_trained(ranks: list[dict[str, Any]]) -> None:
    assert len(ranks) == WORKERS
    for rank in ranks:
        assert rank["counts"] == [STEPS] * WORKERS, "each step of each rank once"
        assert rank["loss"] < 0.01
    assert len({rank["sha256"] for rank in ranks}) == 1


def test_ranks_train_at_their_own_pace(tmp_path: Path) -> None:
    """Rank 0 waits in the middle until the other ranks are far ahead."""
    (tmp_path / "go").touch()
    done = run_job("asynchronous.py", str(STEPS), str(tmp_path), workers=WORKERS, summers=2)
    assert done.returncode == 0, done.stderr
    assert_trained(ends(done.stdout))
    assert max(rank["lead"] for rank in ends(done.stdout)) > 10


@pytest.mark.parametrize("staleness", [0, 3])
def test_no_rank_gets_further_ahead_than_its_staleness(tmp_path: Path, staleness: int) -> None:
    (tmp_path / "go").touch()
    done = run_job("asynchronous.py", str(STEPS), str(tmp_path), str(staleness), workers=WORKERS, summers=1)
    assert done.returncode == 0, done.stderr
    assert_trained(ends(done.stdout))
    assert max(rank["lead"] for rank in ends(done.stdout)) == staleness


@pytest.mark.parametrize("lost", [1, 2], ids=["one", "all"])
def test_a_killed_summer_costs_no_step(tmp_path: Path, lost: int) -> None:
    with job(tmp_path, WORKERS, 2) as started:
        program = ("asynchronous.py", str(STEPS), str(tmp_path))
        workers = [started.start_worker(index, *program) for index in range(WORKERS)]
        for worker in workers:
            read_until(worker, "training")
        for summer in started.summers[:lost]:
            summer.kill()
        for summer in started.summers[:lost]:
            started.wait_for_loss(summer)
        (tmp_path / "go").touch()
        ranks = []
        for worker in workers:
            out, err = worker.communicate(timeout=TIMEOUT)
            assert worker.returncode == 0, err
            ranks += ends(out)
        assert_trained(ranks)
        assert started.coordinator.wait(timeout=TIMEOUT) == 0


def test_a_finished_rank_stays_until_all_ranks_finish() -> None:
    done = run_job("apart.py", workers=2, summers=0)
    assert done.returncode == 0, done.stderr
    assert "rank done with 25 to 25" in done.stdout, "the last rank has the contributions of all ranks"


def test_local_ranks_wait_for_each_other_in_each_request() -> None:
    done = run_job("local_accumulation.py", workers=2, summers=1, local_ranks=2)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("passed") == 4, done.stdout
