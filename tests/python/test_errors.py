"""What goes wrong in a job is an error on every rank that says what and who: no hang, no crash, no wrong sum."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import environment, job, read_until, run_job

DEADLINE = 3  # seconds; the job's, for lost members
GRACE = 5  # seconds beyond it, for two busy cores


def python(code: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, env=environment(**more)
    )


def test_before_init() -> None:
    done = python("import gleaner, numpy; gleaner.push_pull(numpy.ones(1, 'f4'), name='early')")
    assert done.returncode == 1
    assert "call gleaner.init() first" in done.stderr


def test_init_without_a_job_says_what_is_missing() -> None:
    done = python("import gleaner; gleaner.init()")
    assert done.returncode == 1
    assert "InvalidArgumentError" in done.stderr
    assert "GLEANER_COORDINATOR" in done.stderr


def test_without_the_library_says_how_to_get_it() -> None:
    done = python("import gleaner; gleaner.init()", GLEANER_LIBRARY="/nowhere/libgleaner.so")
    assert done.returncode == 1
    assert "/nowhere/libgleaner.so" in done.stderr
    assert "build" in done.stderr


@pytest.mark.parametrize("difference", ["size", "type"])
def test_mismatched_declarations_name_tensor_and_workers(difference: str) -> None:
    done = run_job("mismatch.py", difference, workers=3, flags=("--deadline", str(DEADLINE)))
    assert done.returncode == 3, done.stdout + done.stderr
    told = re.findall(r"told: (.*)", done.stdout)
    assert told, done.stdout + done.stderr
    for message in told:
        assert "weight" in message
        assert re.search(r"worker 1\b", message), message
        assert re.search(r"worker [02]\b", message), message


def test_a_tensor_that_one_rank_never_declares() -> None:
    done = run_job("mismatch.py", "name", flags=("--declare-timeout", "2", "--deadline", str(DEADLINE)))
    assert done.returncode == 3, done.stdout + done.stderr
    assert re.search(r"told: .*(weight|odd)", done.stdout)


def test_a_worker_killed_mid_step(tmp_path: Path) -> None:
    with job(tmp_path, 3, 1, "--deadline", str(DEADLINE)) as started:
        workers = [started.start_worker(index, "loop.py") for index in range(3)]
        for worker in workers:
            read_until(worker, "summing")
        workers[2].kill()
        for worker in workers[:2]:
            _, err = worker.communicate(timeout=DEADLINE + GRACE)
            assert worker.returncode == 3, err
            assert re.search(r"worker[ /]2", err), err


def test_a_summer_killed_after_the_coordinator(tmp_path: Path) -> None:
    """Nobody is left who could plan without it."""
    with job(tmp_path, 2, 1, "--deadline", str(DEADLINE)) as started:
        workers = [started.start_worker(index, "loop.py") for index in range(2)]
        for worker in workers:
            read_until(worker, "summing")
        started.coordinator.kill()
        started.coordinator.wait()
        with pytest.raises(subprocess.TimeoutExpired):
            workers[0].wait(timeout=1)  # training goes on
        started.summers[0].kill()
        for worker in workers:
            _, err = worker.communicate(timeout=DEADLINE + GRACE)
            assert worker.returncode == 3, err
            assert re.search(r"error after .*summer/0 at \S+ is lost", err), err
            assert "no coordinator is left" in err


def test_a_wrong_token(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("ab" * 32 + "\n")
    wrong.chmod(0o600)
    with job(tmp_path, 1, 0) as started:
        worker = started.start_worker(0, "loop.py", "5", token=wrong)
        _, err = worker.communicate(timeout=20)
        assert worker.returncode == 3, err
        assert "token" in err


# A shell's background jobs, and with them this process, may have been started with SIGINT ignored.
INTERRUPTIBLE = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
print("joining", flush=True)
import gleaner
gleaner.init()
"""


def test_interrupt_ends_a_waiting_worker(tmp_path: Path) -> None:
    """Ctrl-C while the others have not come: KeyboardInterrupt at once, not after the start's timeout."""
    with job(tmp_path, 2, 0) as started:
        worker = started.start(
            [sys.executable, "-c", INTERRUPTIBLE],
            GLEANER_COORDINATOR=started.coordinator_address,
            GLEANER_WORKER="0",
            GLEANER_TOKEN_FILE=str(started.token),
        )
        read_until(worker, "joining")
        with pytest.raises(subprocess.TimeoutExpired):
            worker.wait(timeout=2)
        os.kill(worker.pid, signal.SIGINT)
        _, err = worker.communicate(timeout=10)
        assert worker.returncode != 0
        assert "KeyboardInterrupt" in err


def test_an_uncaught_exception_is_a_failed_rank(tmp_path: Path) -> None:
    program = tmp_path / "fails.py"
    program.write_text("import gleaner\ngleaner.init()\nraise SystemError('on purpose')\n")
    done = run_job(program, workers=2, summers=0, flags=("--deadline", str(DEADLINE)))
    assert done.returncode == 1
    assert "on purpose" in done.stdout + done.stderr
