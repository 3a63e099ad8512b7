"""`gleaner run` says by which rank a job has failed, and how that rank's process ended."""

from __future__ import annotations

import pytest
from conftest import run_job


@pytest.mark.parametrize(
    ("how", "status", "said"),
    [
        (("exit", "3"), 3, "exited with status 3"),
        (("kill",), 137, "was killed by signal 9 (SIGKILL)"),
        (("raise",), 1, "exited with status 1"),
    ],
)
@pytest.mark.parametrize("local_ranks", [1, 2])
def test_the_rank_that_ended_is_blamed(how: tuple[str, ...], status: int, said: str, local_ranks: int) -> None:
    job = run_job("ending.py", *how, workers=3 if local_ranks == 1 else 1, local_ranks=local_ranks)
    assert job.returncode == status, job.stdout + job.stderr
    verdict = [line for line in job.stderr.splitlines() if line.startswith("gleaner run: worker")]
    assert len(verdict) == 1, job.stderr
    name = "worker 1" if local_ranks == 1 else "worker 0 (local rank 1)"
    assert name in verdict[0] and said in verdict[0], job.stderr


def test_a_rank_that_dies_is_named_by_all_others() -> None:
    job = run_job("ending.py", "kill", workers=3)
    for rank in (0, 2):
        lines = [line for line in job.stderr.splitlines() if line.startswith(f"[worker {rank}]")]
        assert any("worker 1" in line and "was killed by signal 9 (SIGKILL)" in line for line in lines), job.stderr
