"""Steps of a job as its ranks saw them: a step takes from the first rank's begin to the last one's end."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Steps:
    seconds: list[float]

    @classmethod
    def of_ranks(cls, lines: list[dict[str, Any]]) -> Steps:
        """From each rank's step_begins and step_ends (CLOCK_MONOTONIC, which the hosts of a lab share)."""
        begins = zip(*(line["step_begins"] for line in lines))
        ends = zip(*(line["step_ends"] for line in lines))
        return cls([max(last) - min(first) for first, last in zip(begins, ends)])

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        """Half of the range between the quartiles, as a part of the median."""
        if len(self.seconds) < 4:
            return (max(self.seconds) - min(self.seconds)) / 2 / self.median
        low, _, high = statistics.quantiles(self.seconds, n=4)
        return (high - low) / 2 / self.median
