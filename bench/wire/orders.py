"""Rows of jobs whose workers start tensors in different orders, by each strategy that executes a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Optional

from wire import jobs, ranks
from wire.lab import ROOT, Lab, Part, Setting
from wire.row import JOB_SECONDS, MIB, Measured, Row, quotient
from wire.steps import Steps

TENSORS = 12
ORDERS = Setting(4, 0)
LAYERS = Setting(3, 0, rate="2gbit")
STRATEGIES = {
    "summers": [],
    "ring": [],
    "halving-doubling": [],
    "double-tree": [],
    "bcube": [],
    "blueconnect": ["--stages", "2,2"],
    "racks": ["--stages", "2,2"],
    "two-level": ["--stages", "2,2"],
    "gather": [],
}
PROGRAMS = Path(__file__).resolve().parent


def run(part: Part, program: str, arguments: Sequence[object], flags: list[str], window: Optional[str] = None) -> Steps:
    """Measures the steps of a program of this folder."""
    environment = {"PYTHONPATH": str(ROOT / "comm-lib" / "python")}
    if window is not None:
        environment["GLEANER_WINDOW"] = window
    command = ["/usr/bin/python3", str(PROGRAMS / program), *map(str, arguments)]
    return ranks.steps_of(jobs.run(part, command, environment=environment, flags=flags), part.n)


def opposite_over_equal(strategy: str) -> Row:
    def measure(lab: Lab, steps: int) -> Measured:
        part, flags = lab.part(4, 0), ["--strategy", strategy, *STRATEGIES[strategy]]
        few = max(3, steps // 2)
        found = {order: run(part, "starts.py", [TENSORS, MIB, few, order], flags) for order in ("opposite", "equal")}
        figures = {order: each.median for order, each in found.items()}
        return quotient(found["opposite"], found["equal"], figures)

    return Row(f"n=4: {TENSORS} tensors in opposite orders by {strategy}, over one order", 1.5, ORDERS, measure,
               lambda steps: 2 * (JOB_SECONDS + 1.2 * max(3, steps // 2)), at_least=False)  # fmt: skip


def layers_over_large_window(lab: Lab, steps: int) -> Measured:
    """Compares DistributedOptimizer by a ring with the same in a window that holds all gradients."""
    part, flags = lab.part(3, 0), ["--strategy", "ring"]
    ours = run(part, "layers.py", [MIB, 2 * steps], flags)
    large = run(part, "layers.py", [MIB, 2 * steps], flags, window="64MiB")
    return quotient(ours, large, {"ours": ours.median, "window of 64 MiB": large.median})


def rows() -> list[Row]:
    layers = Row("n=3: 16 layers by DistributedOptimizer and ring, over a window of 64 MiB", 1.2, LAYERS,
                 layers_over_large_window, lambda steps: 2 * (5.0 + 0.3 * steps), at_least=False)  # fmt: skip
    return [*(opposite_over_equal(strategy) for strategy in STRATEGIES), layers]
