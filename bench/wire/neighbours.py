"""Sets the scheduling weights of a summer and of a load on the same cores, and measures the summer's use of them."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
from pathlib import Path
from typing import Optional

V1, V2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
# Weights of the summer and of the load. "pod" has the weights that Kubernetes derives from requests of 2m and of 1 CPU
# under cgroup v2.
RATIOS = ("least", "pod")
RATIOS_V1 = {"least": (2, 1024), "pod": (26, 1024)}
RATIOS_V2 = {"least": (1, 100), "pod": (1, 39)}


class Groups:
    """Two cgroups: one for the summer, with the least weight, and one for the load.

    If no cgroup can be created, the summer gets nice 19 instead.
    """

    def __init__(self) -> None:
        self._top: Optional[Path] = None
        self._made: list[Path] = []
        self.weight = "nice 19"
        for top, file, ratios in ((V1, "cpu.shares", RATIOS_V1), (V2, "cpu.weight", RATIOS_V2)):
            with contextlib.suppress(OSError):
                for kind in ("summer", "load"):
                    folder = top / f"gleaner-harmless-{os.getpid()}-{kind}"
                    folder.mkdir()
                    self._made.append(folder)
                self._file, self._ratios, self._top = file, ratios, top
                self.weigh("least")
                return
            self.remove()
            self._top = None

    def put_summer(self, pid: int, least: bool) -> None:
        if self._top is not None:
            ((self._made[0] if least else self._top) / "cgroup.procs").write_text(str(pid))
            return
        for thread in os.listdir(f"/proc/{pid}/task"):
            os.setpriority(os.PRIO_PROCESS, int(thread), 19 if least else 0)

    def put_load(self, pid: int) -> None:
        if self._top is not None:
            (self._made[1] / "cgroup.procs").write_text(str(pid))

    def weigh(self, ratio: str) -> None:
        if self._top is None:
            return
        for folder, weight in zip(self._made, self._ratios[ratio]):
            (folder / self._file).write_text(str(weight))
        self.weight = "{} {} beside {}".format(self._file, *self._ratios[ratio])

    def let_summer_idle(self) -> None:
        """Makes the kernel schedule the summer's whole cgroup as SCHED_IDLE (cpu.idle, since Linux 5.15)."""
        if self._top is None:
            raise SystemExit("harmless: --idle-group needs a cgroup, and this machine cannot make one")
        (self._made[0] / "cpu.idle").write_text("1")
        self.weight = "cpu.idle 1"

    def remove(self) -> None:
        for folder in self._made:
            with contextlib.suppress(OSError):
                folder.rmdir()
        self._made.clear()


def place(pid: int, cores: set[int]) -> None:
    """Restricts all threads of a process to `cores`."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(int(thread), cores)


def schedule(pid: int, policy: int) -> None:
    """Sets the scheduling policy of all threads of a process."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(ProcessLookupError):
            os.sched_setscheduler(int(thread), policy, os.sched_param(0))


def cpu_seconds(pid: int) -> float:
    """Returns the CPU time of all threads of a process, in nanosecond resolution.

    The clock id is that of CPUCLOCK_SCHED, as clock_getcpuclockid(3) computes it.
    """
    return time.clock_gettime(~pid << 3 | 2)


def sent_bytes(pid: int) -> int:
    """Returns the bytes sent over all connections that the process has open."""
    sockets = subprocess.run(["ss", "-HtniOp"], capture_output=True, text=True, check=True).stdout
    lines = [line for line in sockets.splitlines() if f"pid={pid}," in line]
    return sum(int(sent) for line in lines for sent in re.findall(r"bytes_sent:(\d+)", line))


class Watcher:
    """Measures a summer's CPU share and sent bytes between successive calls of since()."""

    def __init__(self, pid: int, cores: int) -> None:
        self._pid, self._cores = pid, cores
        self._last = self._now()

    def _now(self) -> tuple[float, float, int]:
        return time.monotonic(), cpu_seconds(self._pid), sent_bytes(self._pid)

    def since(self) -> tuple[float, float]:
        """Returns the share of the cores, and the bytes sent per second, since the last call."""
        before, self._last = self._last, self._now()
        at, cpus, sent = (now - then for now, then in zip(self._last, before))
        return cpus / at / self._cores, max(0, sent) / at
