"""Tests elastic jobs: workers are lost and join, and the job ends with the bits that one process computes."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest
from conftest import PROGRAMS, ROOT, TIMEOUT, Job, environment, job, read_until, run_job

pytest.importorskip("torch")
sys.path.insert(0, str(ROOT / "comm-lib" / "python"))
from gleaner import elastic  # noqa: E402


def reference(worlds: list[int]) -> str:
    command = [sys.executable, str(PROGRAMS / "elastic.py"), "--reference", json.dumps(worlds)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=TIMEOUT, env=environment())
    return ended(done.stdout)["sha256"]


def ended(output: str) -> dict[str, Any]:
    return json.loads(re.search(r"^ended (.*)$", output, re.MULTILINE)[1])


def outcomes(workers: list[subprocess.Popen[str]]) -> list[dict[str, Any]]:
    """Waits for the workers, which must all succeed with the bits of the reference. Returns their final reports."""
    said = []
    for worker in workers:
        out, err = worker.communicate(timeout=TIMEOUT)
        assert worker.returncode == 0, err
        said.append(ended(out))
    assert len({each["sha256"] for each in said}) == 1
    assert all(each["worlds"] == said[0]["worlds"] for each in said)
    assert said[0]["sha256"] == reference(said[0]["worlds"])
    return said


def start(started: Job, *indices: int, changes: int, flags: tuple[str, ...] = ()) -> list[subprocess.Popen[str]]:
    """Starts workers that train until the number of workers has changed this often, and for at least 40 steps."""
    steps = ("--steps", "40", "--changes", str(changes))
    return [started.start_worker(index, "elastic.py", *steps, *flags) for index in indices]


def coordinator_ends_well(started: Job) -> str:
    _, err = started.coordinator.communicate(timeout=TIMEOUT)
    assert started.coordinator.returncode == 0, err
    return err


def changes(worlds: list[int]) -> list[int]:
    """Returns the successive numbers of workers of the job."""
    return [n for n, before in zip(worlds, [0, *worlds]) if n != before]


def test_workers_are_lost_and_join(tmp_path: Path) -> None:
    """A worker is killed together with a summer, then a worker joins, then two workers are killed at once."""
    with job(tmp_path, 4, 2, "--min-workers", "2") as started:
        workers = start(started, 0, 1, 2, 3, changes=3)
        read_until(workers[0], "step 10 of 4")
        workers[1].kill()
        started.summers[1].kill()
        read_until(workers[0], "of 3 ")
        workers += start(started, 7, changes=3)
        read_until(workers[4], "of 4 as 3")
        workers[0].send_signal(signal.SIGSTOP)  # so that no round begins between the two ends
        workers[3].kill()
        workers[0].kill()
        said = outcomes([workers[2], workers[4]])
        assert changes(said[0]["worlds"]) == [4, 3, 4, 2]
        assert [each["rank"] for each in said] == [0, 1]
        assert [each["resets"] for each in said] == [[3, 4, 2], [2]]
        err = coordinator_ends_well(started)
        assert "worker 1 at 127.0.0.1" in err
        assert started.summers[0].wait(timeout=TIMEOUT) == 0


@pytest.mark.parametrize(
    "flags",
    [
        ("--cross-barrier",),
        ("--fusion-bytes", "inf"),
        ("--fusion-bytes", "auto"),
        ("--cross-barrier", "--fusion-bytes", "3000"),
        ("--sparse",),
        ("--cross-barrier", "--sparse"),
    ],
)
def test_optimizers_go_on_from_the_last_commit(tmp_path: Path, flags: tuple[str, ...]) -> None:
    with job(tmp_path, 3, 0, "--min-workers", "2") as started:
        workers = start(started, 0, 1, 2, changes=1, flags=(*flags, "--commit-every", "5"))
        read_until(workers[0], "step 13 ")
        workers[0].kill()
        said = outcomes(workers[1:])
        worlds = said[0]["worlds"]
        assert changes(worlds) == [3, 2]
        assert worlds.count(3) % 5 == 0


def error_after_a_loss(started: Job) -> str:
    """Kills one of two workers during training. Returns the output of the other worker, which ends in error."""
    workers = [started.start_worker(index, "elastic_numpy.py", "--changes", "1") for index in range(2)]
    read_until(workers[0], "step 3 ")
    workers[1].kill()
    _, err = workers[0].communicate(timeout=TIMEOUT)
    assert workers[0].returncode != 0
    return err


def test_a_job_with_too_few_workers_ends_in_error(tmp_path: Path) -> None:
    # The first round has to begin within the same time. The test waits for that time after the loss.
    with job(tmp_path, 2, 0, "--min-workers", "2", "--start-timeout", "8") as started:
        err = error_after_a_loss(started)
        assert "1 worker has joined, of at least 2" in err, err
        assert started.coordinator.wait(timeout=TIMEOUT) == 1


def test_without_min_workers_a_lost_worker_ends_the_job(tmp_path: Path) -> None:
    with job(tmp_path, 2, 0) as started:
        err = error_after_a_loss(started)
        assert re.search(r"UnavailableError: .*worker 1", err), err


def test_gleaner_run_goes_on_without_a_worker_that_fails() -> None:
    done = run_job("elastic_numpy.py", "--fail-at", "10", workers=3, flags=("--min-workers", "1"))
    assert done.returncode == 0, done.stdout + done.stderr
    ends = re.findall(r"ended with (.*)$", done.stdout, re.MULTILINE)
    assert ends == [str([3] * 10 + [2] * 20)] * 2
    assert "on purpose" in done.stderr


def test_gleaner_run_starts_a_failed_worker_again(tmp_path: Path) -> None:
    flags = ("--min-workers", "1", "--restarts", "1")
    failing = ("--fail-at", "10", "--once", str(tmp_path / "failed"))
    done = run_job("elastic_numpy.py", *failing, "--changes", "2", workers=2, flags=flags)
    assert done.returncode == 0, done.stdout + done.stderr
    ends = re.findall(r"ended with (.*)$", done.stdout, re.MULTILINE)
    assert len(ends) == 2
    assert changes(json.loads(ends[0])) == [2, 1, 2]


def test_a_worker_restarted_after_the_end_of_the_job_does_no_harm(tmp_path: Path) -> None:
    flags = ("--min-workers", "1", "--restarts", "1")
    failing = ("--fail-at", "10", "--once", str(tmp_path / "failed"), "--rejoin", "ended")
    done = run_job("elastic_numpy.py", *failing, "--steps", "11", workers=2, flags=flags)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.findall(r"ended with (.*)$", done.stdout, re.MULTILINE) == [str([2] * 10 + [1])]
    assert "this job has ended" in done.stderr


def test_a_worker_that_was_declared_lost_returns(tmp_path: Path) -> None:
    with job(tmp_path, 3, 0, "--min-workers", "2", "--deadline", "5") as started:
        workers = [started.start_worker(index, "elastic_numpy.py", "--changes", "2") for index in range(3)]
        read_until(workers[1], "step 10 ")
        workers[1].send_signal(signal.SIGSTOP)
        read_until(workers[0], "of 2 ")
        workers[1].send_signal(signal.SIGCONT)
        for worker in workers:
            out, err = worker.communicate(timeout=TIMEOUT)
            assert worker.returncode == 0, err
            assert changes(json.loads(re.search(r"ended with (.*)", out)[1])) == [3, 2, 3]
        coordinator_ends_well(started)


@pytest.mark.parametrize(
    ("claims", "root"),
    [
        ([(0, 0), (0, 0), (0, 0)], 0),
        ([(1, 7), (1, 8), (1, 7)], 1),
        ([(3, 7), (2, 90), (3, 7)], 0),  # rank 1 was declared lost, and continued alone
        ([(0, 0), (1, 0)], 1),
    ],
)
def test_sync_takes_the_state_of_the_most_advanced_rank(
    claims: list[tuple[int, int]], root: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = SimpleNamespace(rank=1, size=len(claims))
    monkeypatch.setattr(elastic.process, "current", lambda: SimpleNamespace(rank_info=info))
    monkeypatch.setattr(elastic, "_sum", lambda ours, name: numpy.array(claims, ours.dtype))
    assert elastic.State()._find_root() == (root, claims[root])


def test_restore_gives_the_values_of_the_last_save() -> None:
    state = elastic.ObjectState(step=1, worlds=[4])
    state.worlds.append(3)
    state.restore()
    state.worlds.append(2)
    state.restore()
    assert (state.step, state.worlds) == (1, [4])
