"""Manages one cgroup per node in each hierarchy of cgroup v1, below a cgroup for the cluster."""

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
        raise LabError(
            f"expected cgroup v1 hierarchies in {ROOT}, such as /sys/fs/cgroup/cpu; the lab supports no other version"
        )
    return [ROOT / controller for controller in CONTROLLERS if (ROOT / controller).is_dir()]


def make(cluster: str, node: str) -> None:
    for hierarchy in hierarchies():
        folder = hierarchy / name_of(cluster) / node
        folder.mkdir(parents=True, exist_ok=True)
        if hierarchy.name == "cpuset":
            # A new cpuset is empty, and accepts no process until CPUs and memory nodes are set.
            for inner in (folder.parent, folder):
                for file in ("cpuset.cpus", "cpuset.mems"):
                    (inner / file).write_text((hierarchy / file).read_text())


def remove(cluster: str, node: str = "", timeout: float = 10.0) -> None:
    """Removes the cgroups of a node, or of the whole cluster if `node` is empty.

    The processes in them must have been killed.
    """
    deadline = time.monotonic() + timeout
    left = [hierarchy / name_of(cluster) / node for hierarchy in hierarchies()]
    while left := [folder for folder in left if not _remove_tree(folder)]:
        if time.monotonic() > deadline:
            raise LabError(f"could not remove the cgroups {', '.join(map(str, left))}: processes still run in them")
        time.sleep(0.05)


def _remove_tree(top: Path) -> bool:
    folders = [folder for folder in top.rglob("*") if folder.is_dir()] if top.is_dir() else []
    for folder in [*sorted(folders, key=lambda folder: -len(folder.parts)), top]:
        with contextlib.suppress(OSError):
            folder.rmdir()
    return not top.exists()
