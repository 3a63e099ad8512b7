"""Requirements of tests on the machine, for several folders. A test whose requirements are missing is skipped."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

import pytest

KERNEL = Path(__file__).resolve().parents[1] / "build" / "vm" / "kernel"  # the kernel that tests/vm/vm boots


@functools.cache
def _namespaces_work() -> bool:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    name = f"glabprobe{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode == 0
    subprocess.run(["ip", "netns", "del", name], capture_output=True)
    return made


def require_namespaces() -> None:
    """Skips the test if this process cannot make network namespaces. Such a test is marked as long."""
    if not _namespaces_work():
        pytest.skip("network namespaces need root")


needs_vm = pytest.mark.skipif(
    not (shutil.which("qemu-system-x86_64") and list(KERNEL.glob("boot/vmlinuz-*"))),
    reason="QEMU or the guest's kernel is missing; scripts/bootstrap vm installs both",
)
