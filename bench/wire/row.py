"""A row of run_all: a ratio that is measured in one run, and its aim."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable

from wire.lab import Lab, Setting
from wire.steps import Steps

MIB = 1 << 20
SETUP_SECONDS = 12.0  # to create a lab's hosts and measure its links
JOB_SECONDS = 1.5  # from a job's start to its first step, plus from its last step to its end


@dataclass
class Measured:
    """The result of a row. `ratio` is compared with the aim; `figures` are its inputs, in seconds unless named
    otherwise."""

    ratio: float
    spread: float
    figures: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    name: str
    aim: float
    setting: Setting  # successive rows with the same setting share a lab
    measure: Callable[[Lab, int], Measured]  # takes the number of steps
    seconds: Callable[[int], float]  # estimated duration of that many steps, without the lab's setup
    at_least: bool = True  # whether the ratio must be at least the aim, or at most
    peers: bool = False  # whether the row needs the programs of bench/peers

    def met(self, ratio: float) -> bool:
        return ratio >= self.aim if self.at_least else ratio <= self.aim

    def describe(self) -> str:
        return f"{self.name:62} {'>=' if self.at_least else '<='} {self.aim:5.3f}"


def estimate(rows: list[Row], steps: int) -> float:
    """Returns the estimated seconds of all rows together."""
    settings = [row.setting for row in rows]
    labs = sum(1 for before, setting in zip([None, *settings], settings) if setting != before)
    return labs * SETUP_SECONDS + sum(row.seconds(steps) for row in rows)


def enough(seconds: float, steps: int) -> tuple[int, int]:
    """Returns the numbers of measured steps and of warm-up steps, for steps of about `seconds`.

    Long steps vary little, so a minute of them suffices, but at least 3.
    """
    return max(3, min(steps, int(60 / seconds))), 2 if seconds < 10 else 1


def quotient(dividend: Steps, divisor: Steps, figures: dict[str, Any]) -> Measured:
    return Measured(dividend.median / divisor.median, max(dividend.spread, divisor.spread), figures)


def best_of(others: dict[str, Steps], ours: Steps) -> tuple[Steps, dict[str, Any]]:
    """Returns the steps of the fastest peer, and the medians of all as figures."""
    name = min(others, key=lambda name: others[name].median)
    figures = {"ours": ours.median, "best": name, **{other: found.median for other, found in others.items()}}
    return others[name], figures
