"""Marks that skip tests where their requirements are missing. Tests of several folders use them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

KERNEL = Path(__file__).resolve().parents[1] / "build" / "vm" / "kernel"  # the kernel that tests/vm/vm boots


def _namespaces_work() -> bool:
    name = f"glabprobe{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode == 0
    subprocess.run(["ip", "netns", "del", name], capture_output=True)
    return made


needs_namespaces = pytest.mark.skipif(not _namespaces_work(), reason="network namespaces need root")
needs_vm = pytest.mark.skipif(
    not (shutil.which("qemu-system-x86_64") and list(KERNEL.glob("boot/vmlinuz-*"))),
    reason="QEMU or the guest's kernel is missing; scripts/bootstrap vm installs both",
)
