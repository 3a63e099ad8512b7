"""Runs short versions of tests/chaos/chaos: on this machine's kernel, and with netem in a virtual machine."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
VM = ROOT / "tests" / "vm" / "vm"

sys.path.insert(0, str(ROOT / "tests"))
from requirements import needs_vm, require_namespaces  # noqa: E402

pytestmark = pytest.mark.long


def run(*command: str | Path, timeout: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=timeout)


def assert_same_bits(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the same bits as in the run without faults" in done.stdout


def test_training_through_faults() -> None:
    require_namespaces()
    done = run(HERE / "chaos", "--seconds", "40", "--seed", "3", timeout=240)
    assert_same_bits(done)
    assert len(re.findall(r" is lost|recoveries;", done.stdout)) > 0, f"no summer was lost\n{done.stdout}"
    assert "SIGKILL the coordinator" in done.stdout


@needs_vm
def test_training_through_bad_networks() -> None:
    chaos = [HERE / "chaos", "--rate", "none", "--faults", "all"]
    small = ["--seconds", "40", "--workers", "2", "--summers", "2", "--width", "64", "--start-timeout", "300"]
    done = run(VM, "--memory", "4G", "--timeout", "560", "--", *chaos, *small, timeout=600)
    assert_same_bits(done)


def test_a_wrong_command_line_is_an_error() -> None:
    require_namespaces()
    done = run(HERE / "chaos", "--faults", "kill,flood", timeout=30)
    assert done.returncode == 2
    assert "no faults called flood" in done.stderr
