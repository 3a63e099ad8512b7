"""Tests that sums of half precision do not depend on how the ranks of a job are divided into workers."""

from __future__ import annotations

import subprocess

import pytest
from conftest import assert_passed, checks_of, run_job

pytest.importorskip("torch")

PROGRAM = "divisions.py"
RANKS = 4


@pytest.fixture(scope="module", params=[(1, 4, 0), (2, 2, 1), (4, 1, 1)], ids=["1x4", "2x2", "4x1"])
def outcome(request: pytest.FixtureRequest) -> subprocess.CompletedProcess[str]:
    workers, local_ranks, summers = request.param
    return run_job(PROGRAM, workers=workers, local_ranks=local_ranks, summers=summers)


@pytest.mark.parametrize("check", checks_of(PROGRAM))
def test_divisions(outcome: subprocess.CompletedProcess[str], check: str) -> None:
    assert_passed(outcome, check, ranks=RANKS)
