"""Ctrl-C ends every wait and takes no memory away that C still uses; an interrupted init() leaves no session behind."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from conftest import Job, job, read_until

PROGRAM = "interrupted.py"


def start(started: Job, index: int, call: str) -> subprocess.Popen[str]:
    return started.start_worker(index, PROGRAM, call, str(index), stdin=subprocess.PIPE)


def tell(process: subprocess.Popen[str]) -> None:
    process.stdin.write("\n")
    process.stdin.flush()


@pytest.mark.parametrize("call", ["broadcast", "synchronize", "shutdown"])
def test_memory_outlives_an_interrupted_wait(tmp_path: Path, call: str) -> None:
    with job(tmp_path, 2, 1, "--deadline", "30") as started:
        interrupted, other = (start(started, index, call) for index in range(2))
        read_until(interrupted, "waiting")
        time.sleep(0.5)
        interrupted.send_signal(signal.SIGINT)
        read_until(interrupted, "interrupted")
        tell(other)  # C now writes to the memory of the call that was interrupted
        read_until(other, "took part", timeout=60)
        tell(interrupted)
        _, err = interrupted.communicate(timeout=60)
        assert interrupted.returncode == 0, err


def test_an_interrupted_init_is_closed(tmp_path: Path) -> None:
    """Its job begins afterwards, and must not wait for a rank that nobody drives."""
    with job(tmp_path, 2, 1) as started:
        interrupted = start(started, 0, "init")
        read_until(interrupted, "waiting")
        time.sleep(1)
        interrupted.send_signal(signal.SIGINT)
        read_until(interrupted, "interrupted")
        other = start(started, 1, "init")
        read_until(other, "told: ", timeout=60)
        assert interrupted.poll() is None
        tell(interrupted)
        _, err = interrupted.communicate(timeout=60)
        assert interrupted.returncode == 0, err


@pytest.mark.parametrize(("framework", "seed"), [("numpy", seed) for seed in range(6)] + [("torch", 6), ("torch", 7)])
def test_interrupts_at_any_moment(tmp_path: Path, framework: str, seed: int) -> None:
    """The program ends by KeyboardInterrupt, in training, joining or leaving; never by a crash."""
    if framework == "torch":
        pytest.importorskip("torch")
    moment = random.Random(seed)
    with job(tmp_path, 1, 1) as started:
        worker = started.start_worker(0, "interrupts.py", framework)
        read_until(worker, "begins", timeout=60)
        time.sleep(moment.random() * 1.5)
        worker.send_signal(signal.SIGINT)
        out, err = worker.communicate(timeout=60)
        assert worker.returncode == -signal.SIGINT, f"seed {seed}: status {worker.returncode}\n{err}"
        assert "KeyboardInterrupt" in err
