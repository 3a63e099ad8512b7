"""Steps of a job, from its ranks' measurements. A step lasts from the first rank's begin to the last rank's end."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Steps:
    """Begin and end of each step, in seconds of CLOCK_MONOTONIC, which the hosts of a lab share."""

    begins: list[float]
    ends: list[float]
    # Mean over the ranks of the time from a rank's own begin of the step to its own end, as osu_allreduce defines
    # latency. The different times at which ranks leave the barrier before the step do not count.
    latencies: list[float] = field(default_factory=list)
    # Seconds since the end of the step before on the last rank; infinite for the first step of a run.
    pauses: list[float] = field(default_factory=list)

    @classmethod
    def of_ranks(cls, lines: list[dict[str, Any]]) -> Steps:
        """Combines the step_begins and step_ends of all ranks."""
        begins = list(zip(*(line["step_begins"] for line in lines)))
        ends = list(zip(*(line["step_ends"] for line in lines)))
        latencies = [statistics.mean(ended) - statistics.mean(begun) for begun, ended in zip(begins, ends)]
        first, last = [min(begun) for begun in begins], [max(ended) for ended in ends]
        pauses = [begin - end for begin, end in zip(first, [-math.inf, *last])]
        return cls(first, last, latencies, pauses)

    def __add__(self, later: Steps) -> Steps:
        return Steps(
            self.begins + later.begins,
            self.ends + later.ends,
            self.latencies + later.latencies,
            self.pauses + later.pauses,
        )

    def where(self, chosen: Sequence[bool]) -> Steps:
        """Returns the steps for which `chosen` is true."""
        kept = [number for number, each in enumerate(chosen) if each]
        latencies = [self.latencies[number] for number in kept] if self.latencies else []
        pauses = [self.pauses[number] for number in kept] if self.pauses else []
        return Steps(
            [self.begins[number] for number in kept], [self.ends[number] for number in kept], latencies, pauses
        )

    @property
    def seconds(self) -> list[float]:
        return [end - begin for begin, end in zip(self.begins, self.ends)]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        return spread(self.seconds)

    @property
    def latency(self) -> float:
        return statistics.median(self.latencies)

    def done_by(self, time: float) -> float:
        """Returns the number of steps that had ended by `time`, plus the elapsed fraction of the step in progress."""
        marks = [self.begins[0], *self.ends]
        for number, (before, after) in enumerate(zip(marks, self.ends)):
            if time < after:
                return number + max(0.0, (time - before) / (after - before))
        return float(len(self.ends))


def spread(values: Sequence[float]) -> float:
    """Returns half of the interquartile range (of the whole range for fewer than four values) over the median."""
    low, high = min(values), max(values)
    if len(values) >= 4:
        low, _, high = statistics.quantiles(values, n=4)
    return (high - low) / 2 / statistics.median(values)


def paces(jobs: list[Steps]) -> list[float]:
    """Returns each job's steps per second over the time in which all jobs made steps."""
    begin, end = max(job.begins[0] for job in jobs), min(job.ends[-1] for job in jobs)
    if end <= begin:
        raise RuntimeError("the jobs did not run at the same time: give them more steps")
    return [(job.done_by(end) - job.done_by(begin)) / (end - begin) for job in jobs]
