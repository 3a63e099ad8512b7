"""Samples the CPU time and the memory of the processes on a part's hosts while a job runs."""

from __future__ import annotations

import subprocess
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from wire.lab import Part
from wire.sampling import TICKS, Sampler


@dataclass(frozen=True)
class Sample:
    time: float  # seconds of CLOCK_MONOTONIC, like those of Steps
    processor_seconds: float  # CPU time since the process began
    resident_bytes: int
    most_resident_bytes: int


def sample(pid: int) -> Sample:
    # The name in parentheses may contain any characters. The fields after it begin with state and ppid.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    resident, most = (int(status[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))
    return Sample(time.monotonic(), (int(fields[11]) + int(fields[12])) / TICKS, resident, most)


class Watch(Sampler):
    """Samples Gleaner's process on each host."""

    def __init__(self, part: Part, period: float = 0.25) -> None:
        super().__init__(period)
        self._part = part
        self.samples: dict[str, list[Sample]] = defaultdict(list)
        self._pids: dict[str, int] = {}

    def sample(self) -> None:
        for host in (*self._part.workers, *self._part.summers):
            try:
                if host not in self._pids:
                    self._find(host)
                if host in self._pids:
                    self.samples[host].append(sample(self._pids[host]))
            except (OSError, KeyError):  # the process has ended
                self._pids.pop(host, None)

    def _find(self, host: str) -> None:
        space = self._part.lab.space(host)
        listed = subprocess.run(["ip", "netns", "pids", space], capture_output=True, text=True).stdout
        for pid in map(int, listed.split()):
            if Path(f"/proc/{pid}/comm").read_text().startswith(("gleaner", "gln-")):
                self._pids[host] = pid


def processor_share(samples: list[Sample], begin: float, end: float) -> float:
    """Returns the share of one core that the process used from about `begin` to about `end`."""
    taken = between(samples, begin, end)
    return (taken[-1].processor_seconds - taken[0].processor_seconds) / (taken[-1].time - taken[0].time)


def between(samples: list[Sample], begin: float, end: float) -> list[Sample]:
    """Returns the samples from the last one before `begin` to the first one after `end`, as far as these exist."""
    before = [each for each in samples if each.time <= begin][-1:]
    after = [each for each in samples if each.time >= end][:1]
    within = before + [each for each in samples if begin < each.time < end] + after
    if len(within) < 2:
        raise RuntimeError("too few samples of the processes: the job was too short")
    return within
