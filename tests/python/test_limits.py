"""Tests that a job ends, and names the limit and what to raise, when the system has too little of something, and that
signals end every program of a job."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Callable, Optional

import pytest
from conftest import GLEANER, SUMMER, TIMEOUT, environment, patient, require_build, wait_until

TRAIN = [str(GLEANER), "bench", "push-pull", "--bytes", "64KiB", "--steps", "2", "--dtype", "fp32", "--json"]
LASTS = ["sleep", "1000"]


class Programs:
    """Starts programs, and finds all processes that come from them by a variable of their environment."""

    def __init__(self) -> None:
        require_build()
        self._mark = f"GLEANER_TESTS_MARK={uuid.uuid4()}"
        self._started: list[subprocess.Popen[str]] = []

    def start(
        self, command: list[str], limit: Optional[Callable[[], None]] = None, **variables: str
    ) -> subprocess.Popen[str]:
        """Starts a program. `limit` runs in the new process before the program."""
        name, value = self._mark.split("=")
        program = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(**{name: value}, **variables),
            preexec_fn=limit,
            start_new_session=True,
        )
        self._started.append(program)
        return program

    def run(self, command: list[str], limit: Optional[Callable[[], None]] = None) -> tuple[int, str]:
        """Runs a program to its end. Returns its status and its standard error."""
        program = self.start(command, limit)
        try:
            _, err = program.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            self.close()
            pytest.fail(f"{' '.join(command)} did not end; it wrote\n{program.communicate()[1]}")
        return program.returncode, err

    def alive(self) -> list[int]:
        """Returns the ids of all processes that come from the programs and run."""
        found = []
        for entry in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if self._mark.encode() in Path("/proc", entry, "environ").read_bytes().split(b"\0"):
                    found.append(int(entry))
        return found

    def close(self) -> None:
        while left := self.alive():
            for process in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            for program in self._started:
                program.poll()


@pytest.fixture
def programs() -> Iterator[Programs]:
    started = Programs()
    try:
        yield started
    finally:
        started.close()


def run(*command: str, flags: tuple[str, ...] = ()) -> list[str]:
    return [str(GLEANER), "run", "--workers", "2", "--summers", "1", *patient(flags), "--", *command]


def lower(which: int, limit: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(which, (limit, limit))


def as_another_user(processes: int) -> Callable[[], None]:
    """Returns a function that makes this process one of a user who has no other, with a limit on their number."""
    user = random.randint(100_000, 2_000_000_000)

    def become() -> None:
        resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)

    return become


def others_may_run_it() -> bool:
    return all(folder.stat().st_mode & 0o001 for folder in GLEANER.parents)


needs_root = pytest.mark.skipif(
    os.getuid() != 0, reason="the limit on processes does not hold for root: needs another user"
)
needs_public_build = pytest.mark.skipif(not others_may_run_it(), reason="other users may not run the build under test")


@needs_root
@needs_public_build
@pytest.mark.parametrize("processes", [3, 12, 20])
def test_too_few_processes(programs: Programs, processes: int) -> None:
    """The job needs more threads than the user may have: at its start with 3, and later with 20."""
    status, err = programs.run(run(*TRAIN), as_another_user(processes))
    assert status not in (0, 128 + signal.SIGABRT), err
    assert "RLIMIT_NPROC" in err and "`ulimit -u`" in err, err
    assert f"may have {processes} processes and threads" in err, err
    assert programs.alive() == []


@needs_root
@needs_public_build
def test_no_process_at_all(programs: Programs) -> None:
    status, err = programs.run(run(*TRAIN), as_another_user(1))
    assert status == 1, err
    assert err.startswith("gleaner run: can't start a process") and "RLIMIT_NPROC" in err, err


@pytest.mark.parametrize("files", [8, 24])
def test_too_few_descriptors(programs: Programs, files: int) -> None:
    status, err = programs.run(run(*TRAIN), lower(resource.RLIMIT_NOFILE, files))
    assert status not in (0, 128 + signal.SIGABRT), err
    assert "RLIMIT_NOFILE" in err and "`ulimit -n`" in err, err
    assert programs.alive() == []


def test_too_little_address_space(programs: Programs) -> None:
    status, err = programs.run(run(*TRAIN), lower(resource.RLIMIT_AS, 100 << 20))
    assert status not in (0, 128 + signal.SIGABRT), err
    assert "RLIMIT_AS" in err and "`ulimit -v`" in err, err
    assert programs.alive() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_coordinator_and_the_summer(programs: Programs, tmp_path: Path, number: int) -> None:
    """A signal ends both before all members have joined, and a summer that reaches no coordinator."""
    token = tmp_path / "token"
    flags = ["--token-file", str(token)]
    coordinator = programs.start(
        [str(GLEANER), "coordinator", "--listen", "127.0.0.1:0", "--workers", "2", *patient((), {}), *flags]
    )
    assert coordinator.stdout.readline().startswith("listening on ")
    summer = programs.start([str(SUMMER), "--coordinator", "127.0.0.1:1", "--listen", "127.0.0.1:0", *flags])
    assert "listening" in summer.stderr.readline()
    for program, status in ((coordinator, 128 + number), (summer, 0)):
        program.send_signal(number)
        assert program.wait(TIMEOUT) == status, program.communicate()
    assert programs.alive() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_workers_that_ignore_it(programs: Programs, tmp_path: Path, number: int) -> None:
    script = f"trap '' TERM INT; touch {tmp_path}/$GLEANER_WORKER; exec sleep 1000"
    job = programs.start(run("sh", "-c", script, flags=("--grace", "0.2")))
    wait_until(lambda: len(os.listdir(tmp_path)) == 2)
    job.send_signal(number)
    assert job.wait(TIMEOUT) != 0
    assert programs.alive() == []


def test_a_killed_job_leaves_no_file(programs: Programs, tmp_path: Path) -> None:
    """Kills both processes of `gleaner run` at once. The file by which others find the job is left, to be reaped."""
    scratch, runtime = tmp_path / "scratch", tmp_path / "runtime"
    scratch.mkdir()
    runtime.mkdir()
    script = (
        f'cd {tmp_path}; cat "$GLEANER_TOKEN_FILE" > token$GLEANER_WORKER; touch ready$GLEANER_WORKER; exec sleep 1000'
    )
    variables = {"TMPDIR": str(scratch), "XDG_RUNTIME_DIR": str(runtime)}
    job = programs.start(run("sh", "-c", script), **variables)
    wait_until(lambda: all((tmp_path / f"ready{worker}").exists() for worker in (0, 1)))
    tokens = {(tmp_path / f"token{worker}").read_text() for worker in (0, 1)}
    assert len(tokens) == 1 and len(tokens.pop()) == 64
    child = int(Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()[0])
    for process in (child, job.pid):
        os.kill(process, signal.SIGKILL)
    job.wait(TIMEOUT)
    wait_until(lambda: programs.alive() == [])
    assert list(scratch.iterdir()) == []
    assert [file.name for file in (runtime / "gleaner").iterdir()] == [f"{job.pid}.json"]
    # Other tests may run jobs of this user at the same time, so the command asks for this one.
    trace = [str(GLEANER), "trace", "--pid", str(job.pid)]
    found = subprocess.run(trace, capture_output=True, text=True, env=environment(**variables))
    assert found.returncode == 1 and " of this user runs on this machine" in found.stderr, found.stderr
    assert list((runtime / "gleaner").iterdir()) == []
