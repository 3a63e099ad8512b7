"""Tests that every rank is told the name of a rank that stops, though other ranks exit as soon as they are told."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import GLEANER, PROGRAMS, environment, patient, require_build

WORKERS = 4
DEADLINE = 6  # seconds
PARALLEL = 2


def told_of(stopped: tuple[int, ...], *arguments: str, delay: float = 0, **flags: str) -> dict[int, str]:
    """Runs a job without summers, and stops these ranks once the sums work. Returns what each other rank is told.

    `arguments`: of exits_on_error.py. `delay`: from the first sums to the stop, in seconds. `flags`: of `gleaner run`.
    """
    options = [word for name, value in flags.items() for word in (f"--{name}", value)]
    command = [str(GLEANER), "run", "--workers", str(WORKERS), *patient(("--deadline", str(DEADLINE), *options))]
    command += ["--", sys.executable, str(PROGRAMS / "exits_on_error.py"), *arguments]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    pids: dict[int, int] = {}
    told: dict[int, str] = {}
    assert run.stdout is not None
    hasty = {int(rank) for rank in arguments[:1]}  # is not told, since it exits before
    for line in run.stdout:
        if found := re.match(r"\[worker (\d)\] pid: (\d+)", line):
            pids[int(found[1])] = int(found[2])
            if len(pids) == WORKERS:
                time.sleep(delay)  # the moment of the stop between two heartbeats differs from job to job
                for rank in stopped:
                    os.kill(pids[rank], signal.SIGSTOP)
        if found := re.match(r"\[worker (\d)\] told: (.*)", line):
            told[int(found[1])] = found[2]
            if len(told) == WORKERS - len({*stopped, *hasty}):
                for rank in stopped:
                    os.kill(pids[rank], signal.SIGKILL)
    _, err = run.communicate()
    assert run.returncode != 0, err
    verdict = next(line for line in err.splitlines() if line.startswith("gleaner run: worker"))
    assert any(f"worker {rank} at" in verdict for rank in stopped), err
    return told


def assert_named(stopped: tuple[int, ...], told: dict[int, str], ranks: set[int]) -> None:
    assert set(told) == ranks, told
    for message in told.values():
        named = re.findall(r"worker[ /](\d) at \S+ is lost", message)
        assert named, message
        assert {int(rank) for rank in named} <= set(stopped), message


@pytest.mark.long  # each job waits for its deadline
@pytest.mark.parametrize(
    ("strategy", "stopped"),
    [("ring", (2,)), ("ring", (0,)), ("ring", (1, 2)), ("halving-doubling", (2,)), ("summers", (3,))],
)
def test_every_rank_is_told_which_rank_stopped(strategy: str, stopped: tuple[int, ...]) -> None:
    require_build()
    with ThreadPoolExecutor(PARALLEL) as pool:
        delays = [0.1, 0.4, 0.7, 1.0]
        jobs = [pool.submit(told_of, stopped, delay=delay, strategy=strategy) for delay in delays]
        for each in jobs:
            assert_named(stopped, each.result(), set(range(WORKERS)) - set(stopped))


@pytest.mark.long
def test_a_rank_that_gives_up_on_a_stopped_rank_is_not_the_cause() -> None:
    """Rank 1 exits 3 s before the deadline, since it waits for each sum for 3 s."""
    require_build()
    assert_named((2,), told_of((2,), "1", "3", strategy="ring"), {0, 3})
