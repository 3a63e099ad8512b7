"""Runs jobs and probes on hosts as users have them: with other loopbacks, greetings of shells, and shared hosts."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
from conftest import GLEANER, PATIENT_RUN, TIMEOUT, environment  # noqa: E402

BENCH = "gleaner bench push-pull --bytes 64KiB --steps 2 --verify"
PATIENT = " ".join(word for pair in PATIENT_RUN.items() for word in pair)


@functools.cache
def namespaces_work() -> bool:
    made = subprocess.run(["unshare", "--net", "ip", "link", "set", "lo", "up"], capture_output=True)
    return made.returncode == 0


def shell(line: str, *before: str) -> subprocess.CompletedProcess[str]:
    """Runs a line of a shell in which `gleaner` is the program under test, behind the words `before`."""
    path = f"{GLEANER.parent}:{environment()['PATH']}"
    return subprocess.run(
        [*before, "bash", "-c", line], capture_output=True, text=True, timeout=TIMEOUT, env=environment(PATH=path)
    )


@pytest.mark.parametrize(
    "command",
    [
        f"gleaner run {PATIENT} --workers 2 --summers 1 -- {BENCH}",
        f"gleaner run {PATIENT} --workers 2 --metrics [::1]:0 --transports tcp -- {BENCH}",
        f"gleaner run {PATIENT} --workers 2 --strategy ring -- {BENCH}",
    ],
)
def test_loopback_of_ipv6_alone(command: str) -> None:
    if not namespaces_work():
        pytest.skip("this test needs a network namespace of its own")
    done = shell(f"ip link set lo up; ip address del 127.0.0.1/8 dev lo; {command}", "unshare", "--net")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("every bit as expected") == 2, done.stdout
