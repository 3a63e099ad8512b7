"""Starts jobs for the tests, with a real coordinator, summers and workers on loopback.

GLEANER_BUILD names the build under test (default: build/release).

The verdict of a test does not depend on the speed of the machine. A test waits for a condition, for at most TIMEOUT; a
test that passes waits for as long as the condition needs. Jobs get the same time to start, and a longer deadline than
the default. Ports are chosen by the kernel, or are free on an address that no other process of the tests has.
"""

from __future__ import annotations

import contextlib
import functools
import os
import queue
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Callable, TextIO, TypeVar

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))  # for the package `lab`
sys.path.insert(0, str(ROOT / "tests"))  # for the module `requirements`

BUILD = Path(os.environ.get("GLEANER_BUILD", ROOT / "build" / "release")).resolve()
PROGRAMS = Path(__file__).resolve().parent / "programs"
GLEANER = BUILD / "bin" / "gleaner"
SUMMER = BUILD / "bin" / "gleaner-summer"
LIBRARY = BUILD / "lib" / "libgleaner.so"
TIMEOUT = 240  # seconds within which a condition comes true on any machine
# Flags of all jobs whose test sets no other value. `gleaner run` also waits for long until it kills a process that has
# to end.
PATIENT = {"--start-timeout": str(TIMEOUT), "--deadline": "60"}
PATIENT_RUN = {**PATIENT, "--grace": str(TIMEOUT)}
CLAIMS: list[socket.socket] = []  # sockets that keep own_address() from other processes until this process ends

T = TypeVar("T")


@pytest.hookimpl(tryfirst=True)  # before pytest selects tests by their markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests that use a real API server as long."""
    for item in items:
        if "kubernetes" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.long)


def environment(**more: str) -> dict[str, str]:
    """Returns the environment of a job's process, which uses this tree's package and library, and one thread."""
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT / "comm-lib" / "python"),
        "GLEANER_LIBRARY": str(LIBRARY),
        "GLEANER_OPEN_TIMEOUT": str(TIMEOUT),
        "GLOO_SOCKET_IFNAME": "lo",  # a machine's own name may lead to no address
        "OMP_NUM_THREADS": "1",
        **more,
    }


def patient(flags: tuple[str, ...], others: Mapping[str, str] = MappingProxyType(PATIENT_RUN)) -> list[str]:
    """Returns the given flags of `gleaner run`, and those of `others` that are not among them."""
    return [*flags, *(word for flag, value in others.items() if flag not in flags for word in (flag, value))]


def run_job(
    program: str | Path,
    *arguments: str,
    workers: int = 2,
    summers: int = 1,
    local_ranks: int = 1,
    flags: tuple[str, ...] = (),
    timeout: float = TIMEOUT,
    python: str = sys.executable,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.CompletedProcess[str]:
    """Runs a program of programs/ with `gleaner run`. Returns the exit status of `gleaner run`, and all output.

    Kills the job on a timeout. `variables` are environment variables of the workers only.
    """
    require_build()
    command = [str(GLEANER), "run", "--workers", str(workers), "--summers", str(summers)]
    command += ["--local-ranks", str(local_ranks), *patient(flags), "--"]
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


def start_ranks(
    script: str | Path, ranks: int, *arguments: str, folder: Path | None = None, **variables: str
) -> list[subprocess.Popen[str]]:
    """Starts the ranks of a program of programs/ as torchrun does, which does not run with the Python of Debian 12.

    Args:
        script: Name of the program, or the path of another one.
        ranks: Number of ranks, all on this machine.
        arguments: Arguments of the program.
        folder: Working directory of the ranks.
        variables: More environment variables of the ranks.
    """
    require_build()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(ranks),
        "LOCAL_WORLD_SIZE": str(ranks),
        "GROUP_RANK": "0",
        "TORCHELASTIC_RUN_ID": "1",
        **variables,
    }
    return [
        subprocess.Popen(
            [sys.executable, str(PROGRAMS / script), *arguments],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment(**common, RANK=str(rank), LOCAL_RANK=str(rank)),
        )
        for rank in range(ranks)
    ]


def end_of_ranks(ranks: list[subprocess.Popen[str]]) -> subprocess.CompletedProcess[str]:
    """Waits for all ranks. Returns the exit status of the first one that failed, else 0, and the output of all."""
    try:
        outputs = [rank.communicate(timeout=TIMEOUT)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    status = next((rank.returncode for rank in ranks if rank.returncode), 0)
    return subprocess.CompletedProcess([], status, "".join(outputs), "")


def run_ranks(
    script: str | Path, ranks: int, *arguments: str, folder: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs start_ranks() to the end."""
    return end_of_ranks(start_ranks(script, ranks, *arguments, folder=folder, **variables))


def checks_of(program: str) -> list[str]:
    """Returns the names of the checks in a program of programs/, in order."""
    return re.findall(r"^def (check_\w+)\(", (PROGRAMS / program).read_text(), re.MULTILINE)


def assert_passed(outcome: subprocess.CompletedProcess[str], check: str, ranks: int) -> None:
    """Asserts that every rank printed that a check passed."""
    passed = len(re.findall(rf"\bpassed {check}$", outcome.stdout, re.MULTILINE))
    assert passed == ranks, f"{check} passed on {passed} of {ranks} ranks\n{outcome.stdout}\n{outcome.stderr}"


def assert_digits_have_equal_bits(program: str) -> None:
    """Asserts that an example of examples/digits ends with the same bits on two ranks and without Gleaner."""
    train = ROOT / "examples" / "digits" / program
    job = run_job(train, "--epochs", "2")
    assert job.returncode == 0, job.stdout + job.stderr
    command = [sys.executable, str(train), "--epochs", "2", "--reference", "2"]
    alone = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, env=environment())
    assert alone.returncode == 0, alone.stdout + alone.stderr
    digests = re.findall(r"SHA-256 (\w+)", job.stdout + alone.stdout)
    assert len(digests) == 3 and len(set(digests)) == 1, job.stdout + alone.stdout


def programs_of(document: str, heading: str) -> list[str]:
    """Returns the Python programs in a section of a document."""
    section = (ROOT / "docs" / document).read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", section, re.DOTALL)


class Job:
    """A job whose coordinator, summers and workers the test starts one by one, as on bare metal."""

    def __init__(
        self, folder: Path, workers: int, summers: int, *flags: str, summer_flags: tuple[str, ...] = ()
    ) -> None:
        require_build()
        self.token = folder / "token"
        self._processes: list[subprocess.Popen[str]] = []
        self._logs: dict[int, Log] = {}  # by process id
        command = [str(GLEANER), "coordinator", "--listen", "127.0.0.1:0", "--token-file", str(self.token)]
        command += ["--workers", str(workers), "--summers", str(summers), *patient(flags, PATIENT)]
        self.coordinator = self.start(command)
        self.coordinator_address = read_until(self.coordinator, "listening on ").split()[-1]
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

    def log_of(self, process: subprocess.Popen[str]) -> Log:
        """Returns the log of a process of this job. Only this log then reads the process's standard error."""
        if process.pid not in self._logs:
            self._logs[process.pid] = Log(process.stderr)
        return self._logs[process.pid]

    def wait_for_loss(self, summer: subprocess.Popen[str]) -> None:
        """Waits until the coordinator's log says that it has lost the summer."""
        address = self.log_of(summer).wait_for(r"listening address=(\S+)")[1]
        self.log_of(self.coordinator).wait_for(rf"summer \d+ at {address} is lost")

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            if process.pid in self._logs:
                self._logs[process.pid].whole()
                process.wait()
            else:
                process.communicate()


@contextlib.contextmanager
def job(folder: Path, workers: int, summers: int, *flags: str, summer_flags: tuple[str, ...] = ()) -> Iterator[Job]:
    started = Job(folder, workers, summers, *flags, summer_flags=summer_flags)
    try:
        yield started
    finally:
        started.close()


class Log:
    """Follows the standard output or standard error of a process. Nothing else may read from that stream."""

    def __init__(self, stream: TextIO) -> None:
        self.text = ""
        self._thread = threading.Thread(target=self._follow, args=(stream,), daemon=True)
        self._thread.start()

    def _follow(self, stream: TextIO) -> None:
        for line in stream:
            self.text += line

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Waits until the log matches the pattern."""
        end = time.monotonic() + TIMEOUT
        while not (found := re.search(pattern, self.text)):
            assert self._thread.is_alive() or re.search(
                pattern, self.text
            ), f"the log ended without {pattern!r}: {self.text}"
            assert time.monotonic() < end, f"no {pattern!r} within {TIMEOUT} s: {self.text}"
            time.sleep(0.02)
        return found

    def whole(self) -> str:
        """Returns all of the log. The process must end."""
        self._thread.join(TIMEOUT)
        assert not self._thread.is_alive(), f"the process did not end within {TIMEOUT} s: {self.text}"
        return self.text


def wait_until(condition: Callable[[], T], timeout: float = TIMEOUT, what: str = "a condition") -> T:
    """Waits until `condition` returns a true value, and returns it.

    Fails after `timeout` seconds with an error that says `what` the condition is.
    """
    end = time.monotonic() + timeout
    while not (found := condition()):
        assert time.monotonic() < end, f"waited {timeout} s in vain until {what}"
        time.sleep(0.02)
    return found


def read_until(process: subprocess.Popen[str], text: str, timeout: float = TIMEOUT) -> str:
    """Reads a process's standard output until a line contains `text`. Returns that line."""
    found: queue.Queue[str] = queue.Queue()

    def find() -> None:
        found.put(next((line for line in process.stdout if text in line), ""))

    threading.Thread(target=find, daemon=True).start()
    try:
        line = found.get(timeout=timeout)
    except queue.Empty:
        pytest.fail(f"no {text!r} within {timeout} s")
    assert line, f"the output of the process ended without {text!r}"
    return line


def summers_of(process: int) -> list[int]:
    """Returns the process ids of all summers among the descendants of a process."""
    found = []
    for task in os.listdir(f"/proc/{process}/task"):
        with open(f"/proc/{process}/task/{task}/children") as children:
            below = [int(child) for child in children.read().split()]
        for child in below:
            with open(f"/proc/{child}/cmdline", "rb") as words:
                is_one = words.read().split(b"\0")[0].endswith(b"/gleaner-summer")
            found += [child] if is_one else summers_of(child)
    return sorted(found)


@functools.cache
def own_address() -> str:
    """Returns an address of the loopback network that no other process of the tests has while this process runs.

    Sockets without an address of their own get 127.0.0.1, so nothing but this process's programs uses its ports.
    """
    while True:
        address = f"127.{random.randint(1, 254)}.{random.randint(0, 255)}.{random.randint(1, 254)}"
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0gleaner tests {address}")  # fails if another process has claimed the address
        except OSError:
            claim.close()
            continue
        CLAIMS.append(claim)
        return address


def free_address() -> str:
    """Returns HOST:PORT of a port on own_address(), for a program that does not tell which port it has got.

    The port is outside the range from which the kernel chooses ports, so no program gets it by chance.
    """
    for port in random.sample(range(20_000, 32_000), 1000):
        with socket.socket() as probe:
            try:
                probe.bind((own_address(), port))
            except OSError:
                continue
        return f"{own_address()}:{port}"
    raise AssertionError(f"{own_address()} has no free port")


@pytest.fixture(scope="session")
def kubernetes() -> None:
    """Skips the test if this machine cannot run a real API server. Tests that use this fixture are long."""
    from real_api import why_not

    reason = why_not()
    if reason is not None:
        pytest.skip(reason)


def require_build() -> None:
    missing = [str(path) for path in (GLEANER, SUMMER, LIBRARY) if not path.exists()]
    assert not missing, f"this needs {', '.join(missing)}; build with scripts/build, or set GLEANER_BUILD"
