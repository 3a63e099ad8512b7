"""Takes samples during a measurement, and reads the CPU times that the kernel counts."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Self

TICKS = os.sysconf("SC_CLK_TCK")  # ticks per second in /proc
STAT = Path("/proc/stat")
TIMES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")  # first line of STAT (proc(5))


class Sampler(ABC):
    """Calls sample() every `period` seconds in a new thread, from the begin of the with-statement to its end."""

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
            self.sample()

    @abstractmethod
    def sample(self) -> None:
        """Takes a sample."""


def processor_seconds(kinds: tuple[str, ...], stat: Path = STAT) -> float:
    """Returns the seconds that all processors together have spent in the TIMES named by `kinds` since boot.

    A time that an old kernel does not count is 0.
    """
    with stat.open() as file:
        times = dict(zip(TIMES, map(int, file.readline().split()[1:])))
    return sum(times.get(kind, 0) for kind in kinds) / TICKS
