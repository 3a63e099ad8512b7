"""Tests of `gleaner strategies`."""

from __future__ import annotations

import json
import subprocess

import pytest
from conftest import GLEANER, TIMEOUT

STAR = ["--topology", "star:8", "--bandwidth", "10Gbit", "--latency", "10us"]


def strategies(*flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(GLEANER), "strategies", *flags], capture_output=True, text=True, timeout=TIMEOUT)


def compared(*flags: str) -> dict:
    done = strategies(*flags, "-o", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_times_are_those_of_the_model() -> None:
    report = compared(*STAR, "--sizes", "1000000,4000000", "--partition-bytes", "1000000")
    by_name = {each["strategy"]: each["seconds"] for each in report["strategies"] if not each["stages"]}
    a, byte = 20e-6, 8 / 10e9
    assert by_name["ring"] == pytest.approx([14 * a + 1.75e6 * byte, 14 * a + 7e6 * byte])
    assert by_name["summers"] == pytest.approx([2 * a + 14e6 * byte, 2 * a + (14e6 + 1.75 * 3e6) * byte], rel=1e-5)


def test_size_and_summers_decide() -> None:
    assert compared(*STAR, "--sizes", "4,256KiB")["fastest"] == ["summers", "halving-doubling"]
    shared = compared("--topology", "star:16", "--summers", "8", "--bandwidth", "10Gbit", "--sizes", "64MiB")
    assert shared["fastest"] == ["summers"]


def test_the_table_marks_the_fastest() -> None:
    table = strategies(*STAR, "--sizes", "4").stdout.splitlines()
    assert table[0].split() == ["STRATEGY", "4", "B"]
    assert [line.split()[0] for line in table[1:-1] if "*" in line] == ["summers"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "--topology"),
        (["--topology", "star:4", "--summers", "4"], "--summers: 4 of the 4 hosts"),
        (["--topology", "star:4", "--sizes", "4,x"], "--sizes: "),
        (["--topology", "bigraph:2x4"], "--topology: "),
    ],
)
def test_bad_flags_are_named(flags: list[str], message: str) -> None:
    done = strategies(*flags)
    assert done.returncode == 2
    assert message in done.stderr
