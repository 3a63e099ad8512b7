"""A short share of tests/chaos/chaos: on this machine's kernel, and with netem in a virtual machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
VM = ROOT / "tests" / "vm" / "vm"
KERNEL = ROOT / "build" / "vm" / "kernel"


def namespaces_work() -> bool:
    name = f"glabprobe{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode == 0
    subprocess.run(["ip", "netns", "del", name], capture_output=True)
    return made


needs_vm = pytest.mark.skipif(
    not (shutil.which("qemu-system-x86_64") and list(KERNEL.glob("boot/vmlinuz-*"))),
    reason="no QEMU or no kernel; scripts/bootstrap vm gets both",
)
needs_lab = pytest.mark.skipif(not namespaces_work(), reason="network namespaces need root")


def run(*command: str | Path, timeout: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=timeout)


def assert_same_bits(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    assert "bit for bit those of the quiet run" in done.stdout


@needs_lab
def test_training_through_faults() -> None:
    done = run(HERE / "chaos", "--seconds", "40", "--seed", "3", timeout=240)
    assert_same_bits(done)
    assert len(re.findall(r" is lost|recoveries;", done.stdout)) > 0, f"no summer was lost\n{done.stdout}"
    assert "SIGKILL the coordinator" in done.stdout


@needs_vm
@pytest.mark.long
def test_training_through_bad_networks() -> None:
    chaos = [HERE / "chaos", "--rate", "none", "--faults", "all"]
    small = ["--seconds", "40", "--workers", "2", "--summers", "2", "--width", "64", "--start-timeout", "300"]
    done = run(VM, "--memory", "4G", "--timeout", "560", "--", *chaos, *small, timeout=600)
    assert_same_bits(done)


@needs_lab
def test_it_tells_a_wrong_command_line() -> None:
    done = run(HERE / "chaos", "--faults", "kill,flood", timeout=30)
    assert done.returncode == 2
    assert "no faults called flood" in done.stderr
