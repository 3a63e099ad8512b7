"""Simulates the CPUs and the memory of a node with files that are mounted over files in /proc and /sys."""

from __future__ import annotations

import os
import re
from pathlib import Path


def write_machine(folder: Path, cpus: int, memory_gib: int) -> None:
    """Writes cpu/ and node/ (both for /sys/devices/system), and meminfo (for /proc)."""
    kibibytes = memory_gib << 20
    real = os.cpu_count() or 1
    cpu, node = folder / "cpu", folder / "node" / "node0"
    cpu.mkdir(parents=True, exist_ok=True)
    node.mkdir(parents=True, exist_ok=True)
    for index in range(cpus):
        # cadvisor counts these folders, and the kubelet writes their numbers to a cpuset, which accepts only real CPUs.
        # So the surplus folders are further names of real CPUs: cpu00, cpu01, cpu000 for CPUs 0, 1 and 0.
        name = f"cpu{index % real:0{index // real + 1}d}"
        for parent in (cpu, node):
            (parent / name / "topology").mkdir(parents=True, exist_ok=True)
            (parent / name / "online").write_text("1\n")
            (parent / name / "topology" / "core_id").write_text(f"{index}\n")
            (parent / name / "topology" / "physical_package_id").write_text("0\n")
    for file in (cpu / "online", cpu / "possible", cpu / "present", node / "cpulist"):
        file.write_text(f"0-{real - 1}\n")
    for file in (folder / "node" / "online", folder / "node" / "possible"):
        file.write_text("0\n")
    (node / "meminfo").write_text(f"Node 0 MemTotal: {kibibytes} kB\n")
    (node / "distance").write_text("10\n")
    actual = Path("/proc/meminfo").read_text()
    (folder / "meminfo").write_text(re.sub(r"(?m)^MemTotal:.*$", f"MemTotal:       {kibibytes} kB", actual))
