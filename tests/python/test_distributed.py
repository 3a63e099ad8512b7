"""Tests backend gleaner of torch.distributed: all checks of distributed_checks.py, and a rank that is lost."""

from __future__ import annotations

import functools
import re
import socket
import subprocess
import sys
from collections.abc import Callable

import pytest
from conftest import PROGRAMS, TIMEOUT, assert_passed, checks_of, environment, run_job

pytest.importorskip("torch")

PROGRAM = "distributed_checks.py"
LOST = "distributed_lost.py"
DIFFERENCES = "distributed_differences.py"
RANKS = 3
Run = Callable[[str], subprocess.CompletedProcess[str]]


def by_environment(program: str, ranks: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a program as torchrun does. The torchrun of Debian 12 does not run with its Python."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    processes = [
        subprocess.Popen(
            [sys.executable, str(PROGRAMS / program), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment(
                **common, RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(ranks)
            ),
        )
        for rank in range(ranks)
    ]
    try:
        outputs = [process.communicate(timeout=TIMEOUT)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return subprocess.CompletedProcess([], max(process.returncode for process in processes), "".join(outputs), "")


@pytest.fixture(scope="module")
def run() -> Run:
    """Returns a function that runs the checks by a launcher, and each launcher once."""
    launchers: dict[str, Callable[[], subprocess.CompletedProcess[str]]] = {
        "gleaner run": lambda: run_job(PROGRAM, workers=RANKS, summers=0),
        "gleaner run with summers": lambda: run_job(PROGRAM, workers=RANKS, summers=2),
        "environment": lambda: by_environment(PROGRAM, RANKS),
    }
    return functools.cache(lambda launcher: launchers[launcher]())


@pytest.mark.parametrize("launcher", ["gleaner run", "gleaner run with summers", "environment"])
@pytest.mark.parametrize("check", checks_of(PROGRAM))
def test_distributed(run: Run, launcher: str, check: str) -> None:
    assert_passed(run(launcher), check, ranks=RANKS)


@pytest.mark.parametrize("launcher", ["gleaner run", "gleaner run with summers", "environment"])
def test_ends_well(run: Run, launcher: str) -> None:
    assert run(launcher).returncode == 0, run(launcher).stdout + run(launcher).stderr


def names_in(program: str) -> list[str]:
    """Returns the keys of a program's dictionary."""
    lines = (PROGRAMS / program).read_text().splitlines()
    return [line.split('"')[1] for line in lines if line.startswith('    "')]


@pytest.mark.parametrize("collective", names_in(LOST))
def test_lost_ranks_are_named(collective: str) -> None:
    done = run_job(LOST, collective, workers=2, summers=0)
    assert "worker 1" in done.stdout.partition("lost: ")[2], done.stdout + done.stderr


def test_lost_ranks_are_named_without_a_launcher_of_gleaner() -> None:
    done = by_environment(LOST, 2, "all_reduce")
    assert "worker 1" in done.stdout.partition("lost: ")[2], done.stdout + done.stderr


@pytest.mark.parametrize("difference", names_in(DIFFERENCES))
def test_ranks_that_differ_get_errors(difference: str) -> None:
    done = run_job(DIFFERENCES, difference, workers=2, summers=0)
    assert len(re.findall(r"^\[worker \d\] error: ", done.stdout, re.MULTILINE)) == 2, done.stdout + done.stderr


def test_jobs_with_local_ranks_are_refused() -> None:
    done = run_job(PROGRAM, workers=1, local_ranks=2)
    assert "--local-ranks" in done.stderr and done.returncode == 1
