"""Steps of a job as its ranks saw them: a step takes from the first rank's begin to the last one's end."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Steps:
    """When each began and ended: seconds of CLOCK_MONOTONIC, which the hosts of a lab share."""

    begins: list[float]
    ends: list[float]
    # What the ranks' own parts took, from each one's begin to its end, on average: leaves out how far apart the
    # barrier before the step let them go. What osu_allreduce calls latency.
    latencies: list[float] = field(default_factory=list)
    # Since the last rank's end of the step before; infinite where there is none in this run.
    pauses: list[float] = field(default_factory=list)

    @classmethod
    def of_ranks(cls, lines: list[dict[str, Any]]) -> Steps:
        """From each rank's step_begins and step_ends."""
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
        """Those for which `chosen` is true."""
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
        """Steps that had ended by then, and of the one in progress the part of its time that had passed."""
        marks = [self.begins[0], *self.ends]
        for number, (before, after) in enumerate(zip(marks, self.ends)):
            if time < after:
                return number + max(0.0, (time - before) / (after - before))
        return float(len(self.ends))


def spread(values: Sequence[float]) -> float:
    """Half of the range between the quartiles (of fewer than four values: of all), as a part of the median."""
    low, high = min(values), max(values)
    if len(values) >= 4:
        low, _, high = statistics.quantiles(values, n=4)
    return (high - low) / 2 / statistics.median(values)


def paces(jobs: list[Steps]) -> list[float]:
    """Steps a second of each, while all of them were at it."""
    begin, end = max(job.begins[0] for job in jobs), min(job.ends[-1] for job in jobs)
    if end <= begin:
        raise RuntimeError("the jobs did not run at the same time: give them more steps")
    return [(job.done_by(end) - job.done_by(begin)) / (end - begin) for job in jobs]
