"""Tests that `gleaner run` names the rank that made a job fail, and tells how the rank's process ended."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
from conftest import GLEANER, TIMEOUT, environment, job, patient, read_until, run_job, wait_until


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


def test_all_other_ranks_name_a_rank_that_dies() -> None:
    job = run_job("ending.py", "kill", workers=3)
    for rank in (0, 2):
        lines = [line for line in job.stderr.splitlines() if line.startswith(f"[worker {rank}]")]
        assert any("worker 1" in line and "was killed by signal 9 (SIGKILL)" in line for line in lines), job.stderr


def test_ranks_with_ten_thousand_tensors_leave(tmp_path: Path) -> None:
    """A member reports the first operations of its tensors in one message, so that its Leave follows soon."""
    tensors = tmp_path / "tensors.json"
    tensors.write_text(json.dumps([{"name": f"tensor{number}", "bytes": 64} for number in range(10_000)]))
    bench = [str(GLEANER), "bench", "push-pull", "--tensors", str(tensors), "--steps", "3", "--warmup", "0"]
    command = [str(GLEANER), "run", "--workers", "2", "--summers", "1", *patient(()), "--", *bench]
    job = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=TIMEOUT)
    assert job.returncode == 0, job.stderr


def test_leaving_ranks_wait_for_a_slow_coordinator(tmp_path: Path) -> None:
    """The test stops the coordinator for 4 s while ranks leave. It may be silent for the deadline of 60 s."""
    stop = tmp_path / "stop"
    with job(tmp_path, 2, 1) as started:
        workers = [started.start_worker(index, "changing.py", str(stop)) for index in range(2)]
        for worker in workers:
            read_until(worker, "summing")
        started.coordinator.send_signal(signal.SIGSTOP)
        try:
            stop.touch()
            time.sleep(4)
        finally:
            started.coordinator.send_signal(signal.SIGCONT)
        for process in (started.coordinator, *workers, *started.summers):
            wait_until(lambda process=process: process.poll() is not None)
            assert process.returncode == 0, process.communicate()
