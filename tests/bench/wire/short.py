"""Rows for CI: short, and of ratios that a change for the worse moves far."""

from __future__ import annotations

from wire import jobs, kernel, peers
from wire.beside import LOOPBACK
from wire.efficiency import efficiency, one
from wire.lab import Lab, Setting
from wire.row import JOB_SECONDS, MIB, Measured, Row, best_of, quotient

FOUR = Setting(4, 4)
STEP = 8 * MIB
MANY, SMALL = 1000, 4096


def kernel_beside_memcpy(lab: Lab, steps: int) -> Measured:
    rates = kernel.rates(4, 4 * MIB)
    return Measured(rates["ratio"], 0.0, rates)


def beside_gloo(lab: Lab, steps: int) -> Measured:
    others = peers.fastest(lab.part(2, 0), [STEP], 5 * steps, mpi_too=False)
    best, figures = best_of(others, mine := jobs.measure(lab.part(2, 0), one(STEP), 5 * steps))
    return quotient(best, mine, figures)


def beside_fused(lab: Lab, steps: int) -> Measured:
    many = jobs.measure(lab.part(2, 2), jobs.write_list(lab.folder, MANY, SMALL), 5 * steps)
    fused = jobs.measure(lab.part(2, 2), one(MANY * SMALL), 5 * steps)
    return quotient(fused, many, {"one": fused.median, "many": many.median})


def rows() -> list[Row]:
    """No aims: what was recorded stands in for them."""
    shaped = [efficiency(f"n=4 k={k}: 8 MiB, bound over step", 0.0, FOUR, 4, k, one(STEP)) for k in (0, 2, 4)]
    return [
        Row("sum kernel beside memcpy", 0.0, LOOPBACK, kernel_beside_memcpy, lambda _: 3.0),
        Row("n=2 k=0 on the loopback: 8 MiB beside the best of Gloo", 0.0, LOOPBACK, beside_gloo,
            lambda steps: 15.0, peers=True),
        Row("n=2 k=2 on the loopback: 1,000 tensors of 4 KiB beside one", 0.0, LOOPBACK, beside_fused,
            lambda steps: 2 * JOB_SECONDS + 0.3 * steps),
        *shaped,
    ]  # fmt: skip
