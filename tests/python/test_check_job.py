"""Tests a whole job of `gleaner run`: a summer is killed in the middle, and the sums have the bits of an oracle."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
from conftest import GLEANER, PROGRAMS, TIMEOUT, Log, environment, patient, require_build, summers_of, wait_until

sys.path.insert(0, str(PROGRAMS))
from checked_sums import TENSORS, data_of

WORKERS = 3


def expected_sha256(steps: int) -> str:
    """Returns the digest of the sums in rank order, each rounded to fp32 after every addition."""
    digest = hashlib.sha256()
    for step in range(steps):
        for name in TENSORS:
            total = data_of(0, step, name)
            for rank in range(1, WORKERS):
                total = total + data_of(rank, step, name)
            digest.update(total[1:].tobytes())
    return digest.hexdigest()


def test_the_oracle_depends_on_the_order_of_ranks() -> None:
    a, b, c = (data_of(rank, 0, "a") for rank in range(WORKERS))
    assert not numpy.array_equal((a + b) + c, a + (b + c))


@pytest.mark.parametrize("killed", [1, 2], ids=["one", "all"])
def test_bits_are_right_though_summers_are_killed(tmp_path: Path, killed: int) -> None:
    require_build()
    stop = tmp_path / "stop"
    flags = patient(("--partition-bytes", "16KiB"))
    command = [str(GLEANER), "run", "--workers", str(WORKERS), "--summers", "2", *flags]
    command += ["--", sys.executable, str(PROGRAMS / "checked_sums.py"), str(stop)]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(), start_new_session=True
    )
    try:
        out, log = Log(running.stdout), Log(running.stderr)
        out.wait_for("summing")
        summers = summers_of(running.pid)
        assert len(summers) == 2
        for summer in summers[:killed]:
            os.kill(summer, signal.SIGKILL)
        wait_until(
            lambda: len(set(re.findall(r"summer \d at \S+ is lost", log.text))) == killed, what="summers are lost"
        )
        stop.touch()
        assert running.wait(TIMEOUT) == 0, out.whole() + log.whole()
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    ends = re.findall(r"^\[worker \d\] steps (\d+) sha256 (\w+)$", out.whole(), re.MULTILINE)
    assert len(ends) == WORKERS, out.text
    assert set(ends) == {(ends[0][0], expected_sha256(int(ends[0][0])))}
