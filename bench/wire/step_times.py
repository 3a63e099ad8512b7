"""The times of a worker's steps, as Steps.of_ranks reads them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager

WARMUP = 2  # steps before the measured ones


class StepTimes:
    """Begin and end of each step, in seconds of this machine's monotonic clock.

    Args:
        warmup: Number of steps before the measured ones.
    """

    def __init__(self, warmup: int = WARMUP) -> None:
        self._warmup = warmup
        self.begins: list[float] = []
        self.ends: list[float] = []

    @contextmanager
    def step(self) -> Iterator[None]:
        self.begins.append(time.monotonic())
        yield
        self.ends.append(time.monotonic())

    def write(self, rank: int) -> None:
        """Writes one line of JSON with `worker`, and `step_begins` and `step_ends` of the measured steps."""
        measured = slice(self._warmup, None)
        print(json.dumps({"worker": rank, "step_begins": self.begins[measured], "step_ends": self.ends[measured]}))
