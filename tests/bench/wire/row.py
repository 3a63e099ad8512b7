"""A row of run_all: a ratio, taken in one run, beside the ratio aimed at."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable

from wire.lab import Lab, Setting
from wire.steps import Steps

MIB = 1 << 20
SETUP_SECONDS = 12.0  # of a lab: its hosts, and what its links carry
JOB_SECONDS = 1.5  # from a job's start to its first step, and from the last to its end


@dataclass
class Measured:
    """`ratio` is what the aim speaks of; `figures` are what it was made from, in seconds unless named otherwise."""

    ratio: float
    spread: float
    figures: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    name: str
    aim: float
    setting: Setting  # rows with the same one, one after the other, share a lab
    measure: Callable[[Lab, int], Measured]  # with so many steps
    seconds: Callable[[int], float]  # about how long that takes, without the lab
    at_least: bool = True  # else the ratio is to be at most the aim
    peers: bool = False  # whether it needs the programs of tests/bench/peers

    def met(self, ratio: float) -> bool:
        return ratio >= self.aim if self.at_least else ratio <= self.aim

    def describe(self) -> str:
        return f"{self.name:62} {'>=' if self.at_least else '<='} {self.aim:5.3f}"


def estimate(rows: list[Row], steps: int) -> float:
    """Seconds that all of them take, one after the other."""
    settings = [row.setting for row in rows]
    labs = sum(1 for before, setting in zip([None, *settings], settings) if setting != before)
    return labs * SETUP_SECONDS + sum(row.seconds(steps) for row in rows)


def enough(seconds: float, steps: int) -> tuple[int, int]:
    """Steps to measure and steps before them: long ones vary little, so that a minute of them will do, 3 at least."""
    return max(3, min(steps, int(60 / seconds))), 2 if seconds < 10 else 1


def quotient(dividend: Steps, divisor: Steps, figures: dict[str, Any]) -> Measured:
    return Measured(dividend.median / divisor.median, max(dividend.spread, divisor.spread), figures)


def best_of(others: dict[str, Steps], ours: Steps) -> tuple[Steps, dict[str, Any]]:
    """The fastest of the others, and the figures of all."""
    name = min(others, key=lambda name: others[name].median)
    figures = {"ours": ours.median, "best": name, **{other: found.median for other, found in others.items()}}
    return others[name], figures
