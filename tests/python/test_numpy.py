"""Tests the numpy API in real jobs: runs all checks of programs/numpy_checks.py in jobs of several shapes."""

from __future__ import annotations

import subprocess

import pytest
from conftest import assert_passed, checks_of, run_job

PROGRAM = "numpy_checks.py"
# Workers and summers: n is 1, 2 and 3; k is 0, 1, and more than n.
SHAPES = [(1, 0), (2, 1), (3, 0), (2, 4)]


@pytest.fixture(scope="module", params=SHAPES, ids=lambda shape: f"{shape[0]}workers{shape[1]}summers")
def outcome(request: pytest.FixtureRequest) -> tuple[subprocess.CompletedProcess[str], int]:
    workers, summers = request.param
    return run_job(PROGRAM, workers=workers, summers=summers), workers


@pytest.mark.parametrize("check", checks_of(PROGRAM))
def test_numpy(outcome: tuple[subprocess.CompletedProcess[str], int], check: str) -> None:
    assert_passed(outcome[0], check, ranks=outcome[1])


def test_every_rank_ends_well(outcome: tuple[subprocess.CompletedProcess[str], int]) -> None:
    assert outcome[0].returncode == 0, outcome[0].stderr


def test_local_ranks_sum_before_the_network() -> None:
    done = run_job("local_ranks.py", workers=2, summers=1, local_ranks=2)
    assert done.returncode == 0, done.stdout + done.stderr
    assert_passed(done, "check_local_sums_are_not_rounded_before_they_travel", 4)
