"""Short rows for CI, with ratios that fall clearly when the data plane gets slower."""

from __future__ import annotations

import statistics
from typing import Callable

from wire import jobs, kernel, peers
from wire.beside import LOOPBACK
from wire.efficiency import efficiency, one
from wire.lab import Lab, Setting
from wire.row import MIB, Measured, Row
from wire.steps import Steps

FOUR = Setting(4, 4)
STEP = 8 * MIB
MANY, SMALL = 1000, 4096
MORE = 8  # factor on the number of steps on the loopback, which are short and vary


def kernel_beside_memcpy(lab: Lab, steps: int) -> Measured:
    rates = kernel.rates(4, 4 * MIB)
    return Measured(rates["ratio"], 0.0, rates)


def in_turn(one_way: Callable[[], Steps], other_way: Callable[[], Steps]) -> tuple[float, float]:
    """Returns the lower quartile of each variant's step times, over several runs in which the variants take turns."""
    runs = [(one_way(), other_way()) for _ in range(3)]
    both = ([step for run in which for step in run.seconds] for which in zip(*runs))
    one, other = (statistics.quantiles(seconds, n=4)[0] for seconds in both)
    return one, other


def beside_gloo(lab: Lab, steps: int) -> Measured:
    part = lab.part(2, 0)
    theirs, ours = in_turn(
        lambda: peers.gloo(part, "torch", [STEP], MORE * steps, 5), lambda: jobs.measure(part, one(STEP), MORE * steps)
    )
    return Measured(theirs / ours, 0.0, {"gloo torch": theirs, "ours": ours})


def beside_fused(lab: Lab, steps: int) -> Measured:
    part, listed = lab.part(2, 2), jobs.write_list(lab.folder, MANY, SMALL)
    fused, many = in_turn(
        lambda: jobs.measure(part, one(MANY * SMALL), MORE * steps), lambda: jobs.measure(part, listed, MORE * steps)
    )
    return Measured(fused / many, 0.0, {"one": fused, "many": many})


def rows() -> list[Row]:
    """Returns the rows. They have no aims, since guard compares with recorded ratios."""
    shaped = [efficiency(f"n=4 k={k}: 8 MiB, bound over step", 0.0, FOUR, 4, k, one(STEP)) for k in (0, 2, 4)]
    return [
        Row("sum kernel beside memcpy", 0.0, LOOPBACK, kernel_beside_memcpy, lambda _: 3.0),
        Row("n=2 k=0 on the loopback: 8 MiB beside torch's Gloo", 0.0, LOOPBACK, beside_gloo,
            lambda _: 15.0, peers=True),
        Row("n=2 k=2 on the loopback: 1,000 tensors of 4 KiB beside one", 0.0, LOOPBACK, beside_fused,
            lambda _: 15.0),
        *shaped,
    ]  # fmt: skip
