"""Tests summers that wait for jobs and are invited, by ranks that start as under torchrun."""

from __future__ import annotations

import contextlib
import re
import secrets
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import (
    GLEANER,
    SUMMER,
    TIMEOUT,
    Log,
    end_of_ranks,
    environment,
    free_address,
    read_until,
    run_ranks,
    start_ranks,
    wait_until,
)

pytest.importorskip("torch")

PROGRAM = "distributed_summers.py"
RANKS = 2


class Waiting:
    """A summer that waits for jobs.

    Attributes:
        address: HOST:PORT at which it is invited.
        metrics: HOST:PORT of its metrics, while it serves a job.
    """

    def __init__(self, token: Path, address: str = "127.0.0.1:0") -> None:
        self.metrics = free_address()
        command = [str(SUMMER), "--await-jobs", address, "--token-file", str(token), "--metrics", self.metrics]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
        )
        self.address = read_until(self.process, "waiting for jobs on ").split()[-1]
        self.log = Log(self.process.stderr)

    def sums(self) -> int:
        """Returns the number of sums that it has made for its job; 0 without one."""
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://{self.metrics}/metrics") as answer:
            found = re.search(r"^gleaner_summer_sums_total\S* (\d+)$", answer.read().decode(), re.MULTILINE)
            return int(found[1]) if found else 0
        return 0

    def close(self) -> None:
        self.process.kill()
        self.log.whole()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()


class Fleet:
    """Waiting summers with one token."""

    def __init__(self, folder: Path) -> None:
        self.token = folder / "summers.token"
        self.token.write_text(secrets.token_hex(32))
        self._started: list[Waiting] = []

    def start(self, address: str = "127.0.0.1:0", token: Path | None = None) -> Waiting:
        self._started.append(Waiting(token or self.token, address))
        return self._started[-1]

    def variables(self, *addresses: str) -> dict[str, str]:
        """Returns the variables of ranks that invite the summers at these addresses."""
        return {"GLEANER_SUMMERS": ",".join(addresses), "GLEANER_SUMMERS_TOKEN_FILE": str(self.token)}

    def close(self) -> None:
        for summer in self._started:
            summer.close()


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    made = Fleet(tmp_path)
    yield made
    made.close()


class Going:
    """A job whose ranks sum until stop()."""

    def __init__(self, folder: Path, **variables: str) -> None:
        self._stop = folder / "stop"
        self._ranks = start_ranks(PROGRAM, RANKS, str(self._stop), **variables)
        self._before = read_until(self._ranks[0], "summing")

    def stop(self) -> str:
        """Ends the job, whose ranks must end well. Returns their further output."""
        self._stop.touch()
        done = end_of_ranks(self._ranks)
        assert done.returncode == 0 and "ended" in done.stdout, done.stdout
        return done.stdout

    def kill(self) -> None:
        for rank in self._ranks:
            rank.kill()
            rank.communicate()


def reached(output: str) -> set[str]:
    """Returns the CPU summers to which rank 0 is connected."""
    return set(re.findall(r"summer/\d", re.search(r"^transports (.*)$", output, re.MULTILINE)[1]))


def sums(output: str) -> str:
    return re.search(r"^sums (\w{64})$", output, re.MULTILINE)[1]


def test_summers_serve_one_job_after_the_other_with_the_same_bits(fleet: Fleet) -> None:
    alone = run_ranks(PROGRAM, RANKS)
    assert alone.returncode == 0 and not reached(alone.stdout), alone.stdout
    summers = [fleet.start(), fleet.start()]
    for _ in range(2):
        job = run_ranks(PROGRAM, RANKS, **fleet.variables(*(summer.address for summer in summers)))
        assert job.returncode == 0 and "warning" not in job.stdout, job.stdout
        assert reached(job.stdout) == {"summer/0", "summer/1"}
        assert sums(job.stdout) == sums(alone.stdout)
        for summer in summers:
            summer.log.wait_for("the job has ended; waiting for the next")


def test_invited_summers_own_partitions(fleet: Fleet, tmp_path: Path) -> None:
    summers = [fleet.start(), fleet.start()]
    job = Going(tmp_path, **fleet.variables(*(summer.address for summer in summers)))
    try:
        for summer in summers:
            wait_until(lambda summer=summer: summer.sums() > 0, what="the summer has made a sum")
        job.stop()
    finally:
        job.kill()


def test_a_killed_summer_is_replaced_at_its_address(fleet: Fleet, tmp_path: Path) -> None:
    killed, other = fleet.start(), fleet.start()
    job = Going(tmp_path, **fleet.variables(killed.address, other.address))
    try:
        killed.process.kill()
        killed.process.wait()
        wait_until(lambda: other.sums() > 0, what="the other summer has made a sum")
        successor = fleet.start(killed.address)
        successor.log.wait_for("joined job=default")
        wait_until(lambda: successor.sums() > 0, what="the successor has made a sum")
        assert f"address={killed.address}" in job.stop()
    finally:
        job.kill()
    successor.log.wait_for("the job has ended; waiting for the next")


def test_a_summer_that_serves_refuses_another_job(fleet: Fleet, tmp_path: Path) -> None:
    summer = fleet.start()
    first = Going(tmp_path, **fleet.variables(summer.address))
    try:
        second = run_ranks(PROGRAM, RANKS, **fleet.variables(summer.address))
        assert second.returncode == 0 and not reached(second.stdout), second.stdout
        assert re.search(rf"address={summer.address} reason=it serves another job", second.stdout), second.stdout
        first.stop()
    finally:
        first.kill()


def test_the_job_goes_on_without_a_summer_that_cannot_be_reached(fleet: Fleet) -> None:
    summer, nowhere = fleet.start(), free_address()
    job = run_ranks(PROGRAM, RANKS, **fleet.variables(nowhere, summer.address))
    assert job.returncode == 0 and reached(job.stdout) == {"summer/0"}, job.stdout
    assert re.search(rf"without an invited summer address={nowhere} ", job.stdout), job.stdout


def test_the_job_goes_on_without_a_summer_of_another_token(fleet: Fleet, tmp_path: Path) -> None:
    other = tmp_path / "other.token"
    other.write_text("another token")
    summer, stranger = fleet.start(), fleet.start(token=other)
    job = run_ranks(PROGRAM, RANKS, **fleet.variables(summer.address, stranger.address))
    assert job.returncode == 0 and reached(job.stdout) == {"summer/0"}, job.stdout
    assert re.search(rf"address={stranger.address} reason=the inviter's token is not this summer's", job.stdout)
    stranger.log.wait_for("an invitation was refused .*token")


def test_summers_without_a_token_file_are_an_error_of_every_rank() -> None:
    job = run_ranks(PROGRAM, RANKS, GLEANER_SUMMERS="127.0.0.1:1")
    errors = re.findall("UnavailableError: .*GLEANER_SUMMERS_TOKEN_FILE", job.stdout)
    assert job.returncode != 0 and len(errors) == RANKS, job.stdout


def coordinate(folder: Path, summers: str, shared: Path) -> str:
    """Runs a coordinator that ends in error, and returns the error."""
    command = [str(GLEANER), "coordinator", "--listen", "127.0.0.1:0", "--workers", "1", "--invite", summers]
    command += ["--token-file", str(folder / "token"), "--invite-token-file", str(shared)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 2, done.stdout + done.stderr
    return done.stderr


@pytest.mark.parametrize(
    "summers, error",
    [("127.0.0.1", "write HOST:PORT"), ("127.0.0.1:1,127.0.0.1:1", "twice"), ("127.0.0.1:0", "expected the port")],
)
def test_a_wrong_list_of_summers_is_an_error(fleet: Fleet, tmp_path: Path, summers: str, error: str) -> None:
    assert error in coordinate(tmp_path, summers, fleet.token)


def test_a_token_that_summers_cannot_find_is_an_error(fleet: Fleet, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a token of another coordinator")
    assert "was not made with the token of the invited summers" in coordinate(tmp_path, "127.0.0.1:1", fleet.token)


def test_a_waiting_summer_ends_at_a_signal(fleet: Fleet) -> None:
    summer = fleet.start()
    summer.process.send_signal(signal.SIGTERM)
    assert summer.process.wait(timeout=TIMEOUT) == 0


@pytest.mark.parametrize("flag", ["--coordinator", "--job", "--index", "--ca-file"])
def test_flags_of_one_job_are_refused(fleet: Fleet, flag: str) -> None:
    command = [str(SUMMER), "--await-jobs", "127.0.0.1:0", "--token-file", str(fleet.token), flag]
    value = "127.0.0.1:1" if flag == "--coordinator" else "1"
    done = subprocess.run([*command, value], capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 2 and f"{flag} is of one job" in done.stderr, done.stderr


def test_a_summer_needs_a_coordinator_or_waits(fleet: Fleet) -> None:
    command = [str(SUMMER), "--listen", "127.0.0.1:0", "--token-file", str(fleet.token)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 2 and "--coordinator or --await-jobs is required" in done.stderr, done.stderr
