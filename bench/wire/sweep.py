"""Rows of efficiency with default settings, by rate and by size, and a row that compares a step of 1 GiB with Gloo."""

from __future__ import annotations

from wire import jobs, peers
from wire.beside import LOOPBACK
from wire.efficiency import EIGHT, GIGABIT, STEP, efficiency, nominal_bound, one
from wire.lab import Lab, Setting
from wire.row import JOB_SECONDS, MIB, Measured, Row, best_of, quotient

KIB = 1 << 10
GIB = 1 << 30
AIM = 0.975
# Steps take about two seconds, so a shaper's burst (5 ms of the rate, but at least 16 KiB) is a small part of them.
RATES = [
    ("n=4 k=4 at 10 Mbit/s: 3 MiB", Setting(4, 4, "10mbit", "16kb"), 3 * MIB),
    ("n=4 k=4 at 50 Mbit/s: 12 MiB", Setting(4, 4, "50mbit", "31kb"), 12 * MIB),
    ("n=4 k=4 at 250 Mbit/s: 64 MiB", Setting(4, 4, "250mbit", "156kb"), STEP),
    ("n=2 k=2 at 2.5 Gbit/s: 512 MiB", Setting(2, 2, "2500mbit", "1562kb"), 512 * MIB),
    ("n=2 k=2 at 1 Gbit/s: 256 MiB", GIGABIT, 256 * MIB),
]
SIZES = {256 * KIB: "256 KiB", MIB: "1 MiB", 4 * MIB: "4 MiB", 16 * MIB: "16 MiB", 256 * MIB: "256 MiB"}
PARTITION_SECONDS = 1.4e-3  # time of a partition of 32 KiB at 200 Mbit/s
TRIPS_SECONDS = 1e-3  # time of two bare round trips and of waiting for a core
MEASURED_SECONDS = 0.5  # total duration of the short steps that are measured for each step of --steps
LARGE_STEP_SECONDS = 1.5  # approximate time to make 1 GiB of data and sum it; measured


def reachable(bound: float) -> float:
    """Returns the aim of a small step: nine tenths of the efficiency that is possible.

    The links carry no results until the first partition has arrived, and the result of the last partition leaves when
    the other links have finished. So a step takes at least two partitions' times and the round trips longer than its
    bound."""
    return 0.9 * bound / (bound + 2 * PARTITION_SECONDS + TRIPS_SECONDS)


def by_size(bytes_: int, label: str) -> Row:
    bound = nominal_bound(EIGHT, 4, 2, bytes_)
    aim = AIM if bytes_ >= STEP else round(reachable(bound), 3)
    return efficiency(f"n=4 k=2: {label}", aim, EIGHT, 4, 2, one(bytes_), max(1, round(MEASURED_SECONDS / bound)))


def large(lab: Lab, steps: int) -> Measured:
    """Compares with the better of Gloo's rings: PyTorch's segmented ring and the chunked ring."""
    part, few = lab.part(2, 0), min(3, steps)
    rings = {f"gloo {name}": peers.gloo(part, name, [GIB], few, 1) for name in ("ring_chunked", "torch")}
    ours = jobs.measure(part, one(GIB), few, 1)
    best, figures = best_of(rings, ours)
    return quotient(best, ours, figures)


def size_rows() -> list[Row]:
    return [by_size(*size) for size in SIZES.items()]


def rate_rows() -> list[Row]:
    return [
        efficiency(name, AIM, setting, setting.workers, setting.summers, one(bytes_)) for name, setting, bytes_ in RATES
    ]


def loopback_rows() -> list[Row]:
    return [
        Row("n=2 k=0 on the loopback: 1 GiB beside the better of Gloo's rings", 1.0, LOOPBACK, large,
            lambda steps: 3 * (JOB_SECONDS + (min(3, steps) + 1) * LARGE_STEP_SECONDS), peers=True)
    ]  # fmt: skip
