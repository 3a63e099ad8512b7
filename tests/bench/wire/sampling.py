"""Samples taken beside a measurement, and the processors' times that this machine's kernel counts."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Self

TICKS = os.sysconf("SC_CLK_TCK")  # a second, in what /proc counts
STAT = Path("/proc/stat")
TIMES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")  # of its first line (proc(5))


class Sampler(ABC):
    """Calls look() every `period` seconds, in a thread of its own, while its with-statement lasts."""

    def __init__(self, period: float) -> None:
        self._period = period
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.wait(self._period):
            self.look()

    @abstractmethod
    def look(self) -> None:
        """Takes a sample."""


def processor_seconds(kinds: tuple[str, ...], stat: Path = STAT) -> float:
    """That all processors together have spent since this machine was started, of the TIMES in `kinds`. What an old
    kernel does not count is 0."""
    with stat.open() as file:
        times = dict(zip(TIMES, map(int, file.readline().split()[1:])))
    return sum(times.get(kind, 0) for kind in kinds) / TICKS
