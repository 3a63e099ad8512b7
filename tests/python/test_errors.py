"""Tests failures of jobs: every rank gets an error that names cause and member, and no rank hangs or crashes."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import TIMEOUT, environment, job, read_until, run_job

# For jobs whose ranks wait for a part of the deadline, or the whole: seconds after which the coordinator declares a
# silent member lost.
DEADLINE = ("--deadline", "6")


def python(code: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=TIMEOUT, env=environment(**more)
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


@pytest.mark.parametrize(
    ("seconds", "error"), [("-1", "ValueError"), ("float('nan')", "ValueError"), ("'1m'", "TypeError")]
)
def test_init_refuses_a_wrong_time(seconds: str, error: str) -> None:
    done = python(f"import gleaner\ntry: gleaner.init(open_timeout={seconds})\nexcept {error} as told: print(told)")
    assert "open_timeout must be a number of seconds" in done.stdout, done.stdout + done.stderr


def test_without_the_library_says_how_to_get_it() -> None:
    done = python("import gleaner; gleaner.init()", GLEANER_LIBRARY="/nowhere/libgleaner.so")
    assert done.returncode == 1
    assert "/nowhere/libgleaner.so" in done.stderr
    assert "build" in done.stderr


def told_of_mismatch(kind: str, **job: Any) -> list[str]:
    """Runs a job of three workers whose declarations or operations differ. Returns the message of every rank."""
    done = run_job("mismatch.py", kind, workers=3, **job)
    assert done.returncode == 3, done.stdout + done.stderr
    told = re.findall(r"told: (.*)", done.stdout)
    assert told, done.stdout + done.stderr
    return told


@pytest.mark.parametrize("difference", ["size", "type"])
def test_mismatched_declarations_name_tensor_and_workers(difference: str) -> None:
    for message in told_of_mismatch(difference):
        assert "weight" in message
        assert re.search(r"worker 1\b", message), message
        assert re.search(r"worker [02]\b", message), message


@pytest.mark.parametrize("local_ranks", [1, 2])
def test_mismatched_operations_name_tensor_workers_and_operations(local_ranks: int) -> None:
    odd = "worker 1" if local_ranks == 1 else r"worker 0 \(local rank 1\)"
    for message in told_of_mismatch("operation", local_ranks=local_ranks):
        assert "tensor 'weight'" in message
        assert re.search(rf"{odd} asks for its sum|{odd} for its sum", message), message
        assert re.search(r"for its average", message), message


def test_a_name_cannot_be_summed_and_accumulated() -> None:
    for message in told_of_mismatch("accumulation"):
        assert "tensor 'weight'" in message
        assert re.search(r"worker 1 declared 4 elements of fp32, accumulated", message), message


def test_different_roots_of_a_broadcast_are_an_error_of_that_call() -> None:
    done = run_job("roots.py", workers=3, flags=("--no-prefix",))
    assert done.returncode == 0, done.stdout + done.stderr
    told = re.findall(r"told: (.*)", done.stdout)
    assert len(told) == 3, done.stdout + done.stderr
    for message in told:
        assert "broadcast of 'broadcast." in message
        assert "rank 2 passes root 1" in message, message
    assert re.findall(r"value: (.*)", done.stdout).count("[3. 3. 3.]") == 3
    assert re.findall(r"value: (.*)", done.stdout).count("[1. 1. 1.]") == 3


@pytest.mark.parametrize("summers", [0, 2])
def test_a_rank_that_finishes_early_ends_the_others(summers: int) -> None:
    """With two summers the workers own no partition, so only the contribution of rank 0 is missing."""
    done = run_job("uneven.py", "5", "8", "8", "return", workers=3, summers=summers, flags=DEADLINE)
    assert done.returncode == 1, done.stdout + done.stderr
    told = re.findall(r"told: (.*)", done.stdout)
    assert told, done.stdout + done.stderr
    for message in [*told, *re.findall(r"gleaner run: (worker .*)", done.stderr)]:
        assert re.search(r"worker 0 finished after 5 steps; worker [12] is at step 6", message), message
        assert "tensor 'weight'" in message


@pytest.mark.parametrize("early", [0, 3])
def test_a_local_rank_that_finishes_early_ends_the_others(early: int) -> None:
    """The other rank of the same machine notices first."""
    steps = ["5" if rank == early else "8" for rank in range(4)]
    done = run_job("uneven.py", *steps, "return", local_ranks=2, flags=DEADLINE)
    assert done.returncode != 0, done.stdout + done.stderr
    told = re.findall(r"told: (.*)", done.stdout)
    assert told, done.stdout + done.stderr
    worker, local_rank = divmod(early, 2)
    seen = rf"local rank {local_rank} of worker {worker} has left the job"
    counted = rf"worker {worker} \(local rank {local_rank}\) finished after 5 steps"
    for message in told:
        assert re.search(rf"{seen}|{counted}", message), message


@pytest.mark.parametrize("summers", [0, 1, 3])
def test_a_rank_that_exits_in_training_ends_the_others(summers: int) -> None:
    """The next step's sums lack the contribution of rank 0, so its colocated summer does not stay to serve them.

    Other ranks do not wait for a part of the deadline, as they do for a rank that returns: this job would not end.
    """
    done = run_job("uneven.py", "5", "8", "8", "exit", workers=3, summers=summers, flags=("--deadline", "100000"))
    assert done.returncode == 4, done.stdout + done.stderr
    told = re.findall(r"told: (.*)", done.stdout)
    assert len(told) == 2, done.stdout + done.stderr
    for message in told:
        assert re.search(r"worker 0 .*left the job, and its process exited with status 4", message), message


@pytest.mark.parametrize("how", ["raise", "die"])
def test_a_rank_that_ends_badly_is_named(how: str) -> None:
    done = run_job("uneven.py", "100000", "1000", how)
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r"gleaner run: worker 1 .*(left with an error|is lost)", done.stderr), done.stdout + done.stderr


def test_a_late_rank_is_named_in_the_log(tmp_path: Path) -> None:
    """Rank 0 goes on once the log names it."""
    go_on = tmp_path / "go on"
    with job(tmp_path, 2, 0) as started:
        workers = [started.start_worker(index, "late.py", "3", str(go_on)) for index in range(2)]
        late = r"tensor 'weight', step 4: worker 1 waits since \d+s for worker 0, which has begun 3 steps"
        started.log_of(started.coordinator).wait_for(late)
        go_on.touch()
        assert_succeed(workers)


def test_ranks_wait_for_a_rank_that_loads_a_checkpoint(tmp_path: Path) -> None:
    """Without --declare-timeout, other ranks wait for a busy rank without a limit."""
    go_on = tmp_path / "go on"
    with job(tmp_path, 2, 0) as started:
        workers = [started.start_worker(index, "late.py", "0", str(go_on)) for index in range(2)]
        # This warning comes 5 s after worker 1 has declared the tensor.
        pending = "tensor 'weight' was declared by worker 1 but not by worker 0"
        started.log_of(started.coordinator).wait_for(pending)
        go_on.touch()
        assert_succeed(workers)


def assert_succeed(workers: list[subprocess.Popen[str]]) -> None:
    for worker in workers:
        out, err = worker.communicate(timeout=TIMEOUT)
        assert worker.returncode == 0, err
        assert "done" in out


def test_a_tensor_that_one_rank_never_declares_is_an_error() -> None:
    done = run_job("mismatch.py", "name", flags=("--declare-timeout", "2"))
    assert done.returncode == 3, done.stdout + done.stderr
    assert re.search(r"told: .*(weight|odd)", done.stdout)


@pytest.mark.long  # the coordinator asks about one of the two tensors every 5 s
def test_a_deadlock_of_ranks_is_an_error() -> None:
    done = run_job("mismatch.py", "order", flags=("--declare-timeout", "2"))
    assert done.returncode == 3, done.stdout + done.stderr
    assert re.search(r"told: .*ranks wait for each other: .*tensor 'a', step 2.*tensor 'b', step 2", done.stdout)


def test_a_worker_killed_mid_step(tmp_path: Path) -> None:
    with job(tmp_path, 3, 1) as started:
        workers = [started.start_worker(index, "loop.py") for index in range(3)]
        for worker in workers:
            read_until(worker, "summing")
        workers[2].kill()
        for worker in workers[:2]:
            _, err = worker.communicate(timeout=TIMEOUT)
            assert worker.returncode == 3, err
            assert re.search(r"worker[ /]2", err), err


@pytest.mark.parametrize("how", ["caught", "uncaught"])
def test_a_process_ends_after_hooks_have_raised_in_backward(how: str, tmp_path: Path) -> None:
    """No launcher ends this process: it has to end by itself."""
    with job(tmp_path, 2, 0) as started:
        workers = [started.start_worker(index, "failed_backward.py", how) for index in range(2)]
        out, err = workers[0].communicate(timeout=TIMEOUT)
        assert workers[0].returncode == (0 if how == "caught" else 1), out + err
        assert ("saved" in out) == (how == "caught"), out + err
        assert re.search(r"worker[ /]1", err), err


def test_the_traceback_of_a_lost_worker_is_short(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    program = tmp_path / "lost.py"
    program.write_text(
        "import os, signal, gleaner.torch as gln, torch\n"
        "gln.init()\n"
        "model = torch.nn.Linear(3, 2)\n"
        "optimizer = gln.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))\n"
        "for step in range(10**6):\n"
        "    if step == 3 and gln.rank() == 1:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    model(torch.ones(1, 3)).sum().backward()\n"
        "    optimizer.step()\n"
    )
    done = run_job(program, workers=3)
    for worker in (0, 2):
        lines = [line for line in done.stderr.splitlines() if line.startswith(f"[worker {worker}]")]
        begin = next(place for place, line in enumerate(lines) if "Traceback" in line)
        assert re.search(r"UnavailableError: worker 1 .* is lost", lines[-1]), done.stderr
        assert sum("gleaner/" in line for line in lines[begin:]) == 1, done.stderr
        assert sum("Traceback" in line for line in lines) == 1, done.stderr


@pytest.mark.parametrize("how", ["return", "exit(0)", "raise SystemError('later')"])
def test_a_caught_error_of_the_session_leaves_no_traceback_of_its_own(how: str, tmp_path: Path) -> None:
    program = tmp_path / "catches.py"
    program.write_text(
        "import gleaner, numpy, os, signal, sys\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "gleaner.init()\n"
        "try:\n"
        "    for step in range(10**6):\n"
        "        if step == 3 and gleaner.rank() == 1:\n"
        "            os.kill(os.getpid(), signal.SIGKILL)\n"
        "        gleaner.push_pull(numpy.ones(3, 'f4'), name='w')\n"
        "except gleaner.UnavailableError as error:\n"
        "    print('caught', error)\n"
        f"{how.replace('return', 'pass').replace('exit', 'sys.exit')}\n"
    )
    done = run_job(program, workers=2)
    assert "caught worker 1" in done.stdout, done.stdout + done.stderr
    assert done.stderr.count("Traceback") == how.startswith("raise"), done.stderr
    assert "UnavailableError" not in done.stderr, done.stderr


def test_a_summer_killed_after_the_coordinator(tmp_path: Path) -> None:
    """Without a coordinator no plan can replace the lost summer."""
    asked = tmp_path / "asked"
    with job(tmp_path, 2, 1, *DEADLINE) as started:
        workers = [started.start_worker(index, "loop.py", "1000000", str(asked)) for index in range(2)]
        for worker in workers:
            read_until(worker, "summing")
        started.coordinator.kill()
        started.coordinator.wait()
        asked.touch()
        for worker in workers:
            read_until(worker, "further")
        started.summers[0].kill()
        for worker in workers:
            _, err = worker.communicate(timeout=TIMEOUT)
            assert worker.returncode == 3, err
            assert re.search(r"error: .*summer/0 at \S+ is lost", err), err
            assert "no coordinator is left" in err


def test_a_wrong_token(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("ab" * 32 + "\n")
    wrong.chmod(0o600)
    with job(tmp_path, 1, 0) as started:
        worker = started.start_worker(0, "loop.py", "5", token=wrong)
        _, err = worker.communicate(timeout=TIMEOUT)
        assert worker.returncode == 3, err
        assert "token" in err


def test_interrupt_ends_a_waiting_worker(tmp_path: Path) -> None:
    """Ctrl-C while other workers are missing raises KeyboardInterrupt, and does not wait for the start timeout."""
    with job(tmp_path, 2, 0, "--start-timeout", "100000") as started:
        worker = started.start_worker(0, "joining.py", GLEANER_OPEN_TIMEOUT="100000")
        read_until(worker, "waiting")
        worker.send_signal(signal.SIGINT)
        _, err = worker.communicate(timeout=TIMEOUT)
        assert worker.returncode != 0
        assert "KeyboardInterrupt" in err


def test_an_uncaught_exception_is_a_failed_rank(tmp_path: Path) -> None:
    program = tmp_path / "fails.py"
    program.write_text("import gleaner\ngleaner.init()\nraise SystemError('on purpose')\n")
    done = run_job(program, workers=2, summers=0)
    assert done.returncode == 1
    assert "on purpose" in done.stdout + done.stderr
