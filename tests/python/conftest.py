"""Starts jobs for the tests, with a real coordinator, summers and workers on loopback.

GLEANER_BUILD names the build under test (default: build/release).
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Callable, TypeVar

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from lab.processes import free_ports  # noqa: E402

BUILD = Path(os.environ.get("GLEANER_BUILD", ROOT / "build" / "release")).resolve()
PROGRAMS = Path(__file__).resolve().parent / "programs"
GLEANER = BUILD / "bin" / "gleaner"
SUMMER = BUILD / "bin" / "gleaner-summer"
LIBRARY = BUILD / "lib" / "libgleaner.so"

T = TypeVar("T")


def environment(**more: str) -> dict[str, str]:
    """Returns the environment of a job's process, which uses this tree's package and library, and one thread."""
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT / "comm-lib" / "python"),
        "GLEANER_LIBRARY": str(LIBRARY),
        "OMP_NUM_THREADS": "1",
        **more,
    }


def run_job(
    program: str | Path,
    *arguments: str,
    workers: int = 2,
    summers: int = 1,
    local_ranks: int = 1,
    flags: tuple[str, ...] = (),
    timeout: float = 90,
    python: str = sys.executable,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.CompletedProcess[str]:
    """Runs a program of programs/ with `gleaner run`. Returns the exit status of `gleaner run`, and all output.

    Kills the job on a timeout. `variables` are environment variables of the workers only.
    """
    require_build()
    command = [str(GLEANER), "run", "--workers", str(workers), "--summers", str(summers)]
    command += ["--local-ranks", str(local_ranks), *flags, "--"]
    if variables:
        command += ["env", *(f"{name}={value}" for name, value in variables.items())]
    command += [python, str(PROGRAMS / program), *arguments]
    job = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(), start_new_session=True
    )
    try:
        out, err = job.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        out, err = job.communicate()
        pytest.fail(f"{' '.join(command)} did not end in {timeout} s; it wrote\n{out}\n{err}")
    return subprocess.CompletedProcess(command, job.returncode, out, err)


def checks_of(program: str) -> list[str]:
    """Returns the names of the checks in a program of programs/, in order."""
    return re.findall(r"^def (check_\w+)\(", (PROGRAMS / program).read_text(), re.MULTILINE)


def assert_passed(outcome: subprocess.CompletedProcess[str], check: str, ranks: int) -> None:
    """Asserts that every rank printed that a check passed."""
    passed = len(re.findall(rf"\bpassed {check}$", outcome.stdout, re.MULTILINE))
    assert passed == ranks, f"{check} passed on {passed} of {ranks} ranks\n{outcome.stdout}\n{outcome.stderr}"


class Job:
    """A job whose coordinator, summers and workers the test starts one by one, as on bare metal."""

    def __init__(
        self, folder: Path, workers: int, summers: int, *flags: str, summer_flags: tuple[str, ...] = ()
    ) -> None:
        require_build()
        self.token = folder / "token"
        self.coordinator_address = f"127.0.0.1:{free_port()}"
        self._folder = folder
        self._processes: list[subprocess.Popen[str]] = []
        command = [str(GLEANER), "coordinator", "--listen", self.coordinator_address, "--token-file", str(self.token)]
        self.coordinator = self.start([*command, "--workers", str(workers), "--summers", str(summers), *flags])
        wait_until(lambda: self.token.exists() or self.coordinator.poll() is not None)
        self.summers = [self.start_summer(*summer_flags) for _ in range(summers)]

    def start_summer(self, *flags: str) -> subprocess.Popen[str]:
        command = [str(SUMMER), "--coordinator", self.coordinator_address, "--token-file", str(self.token), *flags]
        return self.start(command if "--listen" in flags else [*command, "--listen", "127.0.0.1:0"])

    def start_worker(
        self,
        index: int,
        program: str,
        *arguments: str,
        token: Path | None = None,
        stdin: int | None = None,
        **more: str,
    ) -> subprocess.Popen[str]:
        identity = {
            "GLEANER_COORDINATOR": self.coordinator_address,
            "GLEANER_WORKER": str(index),
            "GLEANER_ADDRESS": "127.0.0.1:0",
            "GLEANER_TOKEN_FILE": str(token or self.token),
        }
        command = [sys.executable, str(PROGRAMS / program), *arguments]
        return self.start(command, stdin=stdin, **{**identity, **more})

    def start(self, command: list[str], stdin: int | None = None, **more: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(**more)
        )
        self._processes.append(process)
        return process

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.communicate()


@contextlib.contextmanager
def job(folder: Path, workers: int, summers: int, *flags: str, summer_flags: tuple[str, ...] = ()) -> Iterator[Job]:
    started = Job(folder, workers, summers, *flags, summer_flags=summer_flags)
    try:
        yield started
    finally:
        started.close()


def wait_until(condition: Callable[[], T], timeout: float = 20, what: str = "a condition") -> T:
    """Waits until `condition` returns a true value, and returns it.

    Fails after `timeout` seconds with an error that says `what` the condition is.
    """
    end = time.monotonic() + timeout
    while not (found := condition()):
        assert time.monotonic() < end, f"waited {timeout} s in vain until {what}"
        time.sleep(0.02)
    return found


def read_until(process: subprocess.Popen[str], text: str, timeout: float = 90) -> None:
    """Reads a process's standard output until a line contains `text`. The default timeout allows for a busy machine."""
    found: queue.Queue[str] = queue.Queue()

    def find() -> None:
        found.put(next((line for line in process.stdout if text in line), ""))

    threading.Thread(target=find, daemon=True).start()
    try:
        assert found.get(timeout=timeout), f"the output of the process ended without {text!r}"
    except queue.Empty:
        pytest.fail(f"no {text!r} within {timeout} s")


def free_port() -> int:
    return free_ports(1)[0]


def require_build() -> None:
    missing = [str(path) for path in (GLEANER, SUMMER, LIBRARY) if not path.exists()]
    assert not missing, f"this needs {', '.join(missing)}; build with scripts/build, or set GLEANER_BUILD"
