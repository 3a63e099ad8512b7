"""Tests that the masters of two-level follow a link that becomes slower, and faster again, while a job runs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import GLEANER, ROOT, environment, patient, wait_until
from requirements import require_namespaces

LAB = ROOT / "tests" / "lab" / "lab"
WORKERS = 4
CHUNKS = 8 * WORKERS
pytestmark = pytest.mark.long


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[str]:
    require_namespaces()
    name = f"m{os.getpid() % 10**6}"
    up = [LAB, "up", "--name", name, "--workers", str(WORKERS), "--rate", "100mbit"]
    try:
        subprocess.run([*up, "--hosts-json", tmp_path / "hosts.json"], check=True, capture_output=True)
        yield name
    finally:
        subprocess.run([LAB, "down", "--name", name], capture_output=True)


def balance(local: list[int]) -> float:
    """Returns the most bytes that a worker carries by the least, in one group: 3 parts of a chunk that it masters, and
    1 of each other one."""
    loads = [CHUNKS + (WORKERS - 2) * chunks for chunks in local]
    return max(loads) / min(loads)


def test_masters_follow_a_link(lab: str, tmp_path: Path) -> None:
    """The link of worker 0 falls from 100 to 40 Mbit/s, and recovers. Each worker verifies every bit of every sum."""
    log = tmp_path / "log"
    flags = ["--workers", str(WORKERS), *patient(("--strategy", "two-level", "--stages", f"1,{WORKERS}"))]
    flags += ["--hosts", str(tmp_path / "hosts.json"), "--log-level", "info"]
    bench = [GLEANER, "bench", "push-pull", "--bytes", "1MiB", "--steps", "1000000", "--verify"]
    with log.open("w") as to:
        job = subprocess.Popen([GLEANER, "run", *flags, "--", *bench], stdout=to, stderr=to, env=environment())

    def masters() -> list[list[int]]:
        """Returns the local chunks of each worker by the latest plans."""
        assert job.poll() is None, log.read_text()
        return [
            [int(n) for n in found.split()]
            for found in re.findall(r" to two-level .* with ([\d ]+) local", log.read_text())
        ]

    def set_rate(rate: str) -> None:
        subprocess.run([LAB, "rate", "--name", lab, "worker0", rate], check=True)

    try:
        wait_until(lambda: "plan committed: epoch 2" in log.read_text())
        set_rate("40mbit")
        wait_until(lambda: masters() and balance(masters()[-1][1:]) < 1.05, what="worker 0 gives chunks away")
        assert masters()[-1][0] <= 1
        set_rate("100mbit")
        wait_until(lambda: balance(masters()[-1]) < 1.05, what="all carry the same again")
    finally:
        job.send_signal(signal.SIGINT)
        job.wait()
