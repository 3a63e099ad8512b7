"""One cgroup per node, in each hierarchy of cgroup v1, under one for the cluster."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from .processes import LabError

ROOT = Path("/sys/fs/cgroup")
CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory", "pids", "freezer", "devices", "blkio", "systemd", "unified")


def name_of(cluster: str) -> str:
    return f"gleaner-{cluster}"


def hierarchies() -> list[Path]:
    if not (ROOT / "cpu").is_dir():
        raise LabError(f"expected cgroup v1 hierarchies in {ROOT}, as /sys/fs/cgroup/cpu; this rig knows no other")
    return [ROOT / controller for controller in CONTROLLERS if (ROOT / controller).is_dir()]


def make(cluster: str, node: str) -> None:
    for hierarchy in hierarchies():
        folder = hierarchy / name_of(cluster) / node
        folder.mkdir(parents=True, exist_ok=True)
        if hierarchy.name == "cpuset":
            # A new cpuset is empty, and takes no process until it has processors and memory.
            for inner in (folder.parent, folder):
                for file in ("cpuset.cpus", "cpuset.mems"):
                    (inner / file).write_text((hierarchy / file).read_text())


def remove(cluster: str, node: str = "", timeout: float = 10.0) -> None:
    """Removes what a node, or the whole cluster, had. Its processes must have been killed."""
    deadline = time.monotonic() + timeout
    left = [hierarchy / name_of(cluster) / node for hierarchy in hierarchies()]
    while left := [folder for folder in left if not _remove_tree(folder)]:
        if time.monotonic() > deadline:
            raise LabError(f"could not remove the cgroups {', '.join(map(str, left))}: something still runs in them")
        time.sleep(0.05)


def _remove_tree(top: Path) -> bool:
    folders = [folder for folder in top.rglob("*") if folder.is_dir()] if top.is_dir() else []
    for folder in [*sorted(folders, key=lambda folder: -len(folder.parts)), top]:
        with contextlib.suppress(OSError):
            folder.rmdir()
    return not top.exists()
