"""Tests the choice of transports: by default, forced, mixed, and fallbacks. The bits are always the same."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from conftest import GLEANER, TIMEOUT, environment, free_address, job, patient, read_until, require_build, wait_until
from test_metrics import scrape

BENCH = [str(GLEANER), "bench", "push-pull", "--bytes", "3MB", "--steps", "2", "--verify", "--json"]
RDMA_DEVICES = Path("/sys/class/infiniband")
without_rdma = pytest.mark.skipif(
    RDMA_DEVICES.is_dir() and any(RDMA_DEVICES.iterdir()), reason="this machine has an RDMA device"
)


def run(*flags: str, command: list[str] = BENCH, **more: str) -> subprocess.CompletedProcess[str]:
    require_build()
    words = [str(GLEANER), "run", "--workers", "3", "--summers", "1", "--no-prefix", *patient(flags), "--", *command]
    return subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT, env=environment(**more))


def reports(done: subprocess.CompletedProcess[str]) -> list[dict]:
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(lines) == 3, done.stdout
    return sorted(lines, key=lambda report: report["worker"])


def only(worker: int, transports: str) -> list[str]:
    """Returns a command that makes `worker` use `transports`, and leaves the other workers' transports unchanged."""
    words = f'[ "$GLEANER_WORKER" != {worker} ] || export GLEANER_TRANSPORTS={transports}; exec "$@"'
    return ["sh", "-c", words, "sh", *BENCH]


def fallbacks(text: str) -> dict[tuple[str, str, str], int]:
    """Returns the fallbacks with a count above zero."""
    found = {}
    for line in text.splitlines():
        if line.startswith("gleaner_transport_fallbacks_total{"):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
            found[labels["from"], labels["to"], labels["reason"]] = int(float(line.split()[-1]))
    return {which: count for which, count in found.items() if count > 0}


def test_bits_do_not_depend_on_the_transport() -> None:
    tcp = reports(run("--transports", "tcp"))
    assert tcp[0]["transports"] == "inproc: worker/0; tcp: worker/1, worker/2, summer/0"
    shm = reports(run("--transports", "shm"))
    assert shm[1]["transports"] == "inproc: worker/1; shm: worker/0, worker/2, summer/0"
    default = reports(run())
    assert [report["transports"] for report in default] == [report["transports"] for report in shm]
    mixed = reports(run(command=only(1, "tcp")))
    assert mixed[0]["transports"] == "inproc: worker/0; shm: worker/2, summer/0; tcp: worker/1"
    assert mixed[1]["transports"] == "inproc: worker/1; tcp: worker/0, worker/2, summer/0"
    assert {report["sha256"] for report in [*tcp, *shm, *default, *mixed]} == {tcp[0]["sha256"]}


def test_the_flag_of_the_bench_overrides_the_environment() -> None:
    done = run(command=[*BENCH, "--transports", "tcp"], GLEANER_TRANSPORTS="shm,tcp")
    assert reports(done)[0]["transports"].endswith("tcp: worker/1, worker/2, summer/0")


@without_rdma
def test_a_forced_transport_that_is_missing_is_an_error() -> None:
    done = run(command=[*BENCH, "--transports", "rdma"])
    assert done.returncode != 0
    assert "transport rdma: " in done.stderr, done.stderr


def test_a_peer_without_a_common_transport_is_named() -> None:
    done = run(command=only(1, "shm"), GLEANER_TRANSPORTS="tcp")
    assert done.returncode != 0
    assert "no transport in common with worker/" in done.stderr, done.stderr
    assert "see GLEANER_TRANSPORTS" in done.stderr


def test_an_unknown_transport_is_an_error_that_lists_the_known_ones() -> None:
    done = run("--transports", "pigeon")
    assert done.returncode == 2
    assert "'pigeon' is not a transport; expected shm, rdma or tcp" in done.stderr


def test_a_missing_directory_for_shared_memory_is_a_fallback(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")
    done = run("--transports", "shm,tcp", GLEANER_SHM_DIR=gone)
    assert reports(done)[0]["transports"].endswith("tcp: worker/1, worker/2, summer/0")
    told = [line for line in done.stderr.splitlines() if "transport can't be used" in line]
    assert len(told) == 4, done.stderr  # each member once
    assert all("transport=shm next=tcp" in line and gone in line for line in told), told
    forced = run("--transports", "shm", GLEANER_SHM_DIR=gone)
    assert forced.returncode != 0
    assert "transport shm: " in forced.stderr and gone in forced.stderr, forced.stderr


def test_a_removed_socket_is_a_fallback(tmp_path: Path) -> None:
    """The sockets are removed from the directory before the other worker connects."""
    sockets, stop = tmp_path / "shm", tmp_path / "stop"
    sockets.mkdir()
    address = free_address()
    with job(tmp_path, 2, 0) as started:
        shared = {"GLEANER_SHM_DIR": str(sockets)}
        first = started.start_worker(0, "changing.py", str(stop), **shared)
        wait_until(lambda: any(sockets.iterdir()))
        for socket in sockets.iterdir():
            socket.unlink()
        metrics = {"GLEANER_METRICS": address}
        second = started.start_worker(1, "changing.py", str(stop), **shared, **metrics)
        for worker in (first, second):
            read_until(worker, "summing")
        wait_until(lambda: fallbacks(scrape(address)) == {("shm", "tcp", "connect"): 1})
        served = len(re.findall(r"^gleaner_transport_fallbacks_total{", scrape(address), re.MULTILINE))
        assert served == 9, "all possible fallbacks have a series from the start"
        stop.touch()
        for worker in (first, second):
            _, err = worker.communicate(timeout=TIMEOUT)
            assert worker.returncode == 0, err
            told = [line for line in err.splitlines() if "reached by another transport" in line]
            assert len(told) == (1 if worker is second else 0), err
