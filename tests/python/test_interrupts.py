"""Tests Ctrl-C: it ends every wait, frees no memory that C still uses, and leaves no session after an interrupted
init()."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from conftest import TIMEOUT, Job, job, read_until

PROGRAM = "interrupted.py"


def start(started: Job, index: int, call: str) -> subprocess.Popen[str]:
    return started.start_worker(index, PROGRAM, call, str(index), stdin=subprocess.PIPE)


def tell(process: subprocess.Popen[str]) -> None:
    process.stdin.write("\n")
    process.stdin.flush()


@pytest.mark.parametrize("call", ["broadcast", "synchronize", "shutdown"])
def test_memory_outlives_an_interrupted_wait(tmp_path: Path, call: str) -> None:
    with job(tmp_path, 2, 1, "--deadline", "100000") as started:
        interrupted, other = (start(started, index, call) for index in range(2))
        read_until(interrupted, "waiting")
        interrupted.send_signal(signal.SIGINT)
        read_until(interrupted, "interrupted")
        tell(other)  # lets C write to the memory of the interrupted call
        read_until(other, "took part")
        tell(interrupted)
        _, err = interrupted.communicate(timeout=TIMEOUT)
        assert interrupted.returncode == 0, err


def test_an_interrupted_shutdown_ends_before_the_process(tmp_path: Path) -> None:
    """The process exits while its shutdown() still waits in C for the other rank."""
    with job(tmp_path, 2, 1, "--deadline", "100000") as started:
        interrupted, other = (start(started, index, "shutdown") for index in range(2))
        read_until(interrupted, "waiting")
        interrupted.send_signal(signal.SIGINT)
        read_until(interrupted, "interrupted")
        tell(interrupted)
        read_until(interrupted, "leaving")
        time.sleep(0.5)  # a process that does not wait would end
        assert interrupted.poll() is None, "it waits until its shutdown() has ended"
        tell(other)
        read_until(other, "took part")
        _, err = interrupted.communicate(timeout=TIMEOUT)
        assert interrupted.returncode == 0, err


def test_an_interrupted_init_is_closed(tmp_path: Path) -> None:
    """The job begins after the interrupt, and must not wait for the rank whose init() was interrupted."""
    with job(tmp_path, 2, 1) as started:
        interrupted = start(started, 0, "init")
        read_until(interrupted, "waiting")
        interrupted.send_signal(signal.SIGINT)
        read_until(interrupted, "interrupted")
        other = start(started, 1, "init")
        read_until(other, "told: ")
        assert interrupted.poll() is None
        tell(interrupted)
        _, err = interrupted.communicate(timeout=TIMEOUT)
        assert interrupted.returncode == 0, err


@pytest.mark.long  # the moment differs from run to run
@pytest.mark.parametrize(("framework", "seed"), [("numpy", seed) for seed in range(6)] + [("torch", 6), ("torch", 7)])
def test_interrupts_at_any_moment(tmp_path: Path, framework: str, seed: int) -> None:
    """The program ends by KeyboardInterrupt and never by a crash, whether it trains, joins or leaves."""
    if framework == "torch":
        pytest.importorskip("torch")
    moment = random.Random(seed)
    with job(tmp_path, 1, 1) as started:
        worker = started.start_worker(0, "interrupts.py", framework)
        read_until(worker, "begins")
        time.sleep(moment.random() * 1.5)
        worker.send_signal(signal.SIGINT)
        out, err = worker.communicate(timeout=TIMEOUT)
        assert worker.returncode == -signal.SIGINT, f"seed {seed}: status {worker.returncode}\n{err}"
        assert "KeyboardInterrupt" in err
