"""Rows of latency of one small tensor: ratios of Gleaner's latency to the best peer's, and to that of bare TCP.

Latency is the mean over the ranks of the duration of each rank's own call, as in osu_allreduce. The barrier before a
step therefore does not count. Bare TCP is measured among the same number of hosts.
"""

from __future__ import annotations

from typing import Callable

from wire import jobs, peers
from wire.beside import every_peer
from wire.efficiency import one
from wire.lab import Lab, Setting
from wire.row import JOB_SECONDS, Measured, Row
from wire.steps import Steps, spread

SIZES = {4: "4 B", 256: "256 B", 4096: "4 KiB", 16384: "16 KiB", 65536: "64 KiB", 262144: "256 KiB"}
# Pinned, because the kernel otherwise moves processes between cores, and bare TCP takes a tenth of the time when both
# ends are on one core.
PINNED = Setting(8, 0, pinned=True)
MORE = 20  # factor on the number of steps, which are short and vary

# The flags of Auto, by the class of bits in which it chooses.
AUTO = {"auto": ["--strategy", "auto"], "auto in class Schedule": ["--strategy", "auto", "--bits", "Schedule"]}


def ours(lab: Lab, workers: int, bytes_: int, steps: int, strategy: str = "summers") -> Steps:
    part, flags = lab.part(workers, 0), AUTO.get(strategy, ["--strategy", strategy])
    return lab.once(
        ("small", workers, bytes_, steps, strategy), lambda: jobs.measure(part, one(bytes_), steps, 20, flags=flags)
    )


def estimate(bytes_: int, runs: int, through_one: int = 0) -> Callable[[int], float]:
    """Returns an estimate of a row's duration. `through_one` is the number of messages on the owner's link in a step of
    bare TCP."""
    step = 1.5e-3 + 8 * bytes_ / 100e6 + through_one * 8 * bytes_ / 190e6
    return lambda steps: runs * (JOB_SECONDS + MORE * steps * step)


def over(mine: Steps, others: dict[str, Steps], bytes_: int) -> Measured:
    best = min(others, key=lambda name: others[name].latency)
    figures = {"bytes": bytes_, "ours": mine.latency, "best": best}
    figures |= {name: other.latency for name, other in others.items()}
    varied = max(spread(mine.latencies), spread(others[best].latencies))
    return Measured(mine.latency / others[best].latency, varied, figures)


def beside_peers(bytes_: int, label: str, strategy: str = "summers") -> Row:
    def measure(lab: Lab, steps: int) -> Measured:
        others = every_peer(lab, 8, bytes_, MORE * steps)
        return over(ours(lab, 8, bytes_, MORE * steps, strategy), others, bytes_)

    which = "n=8 k=0" if strategy == "summers" else f"n=8 by {strategy}"
    name = f"{which}: {label} over the best of Gloo and Open MPI"
    # The rows by summers measure the peers for those of other strategies.
    runs = 8 if strategy == "summers" else 1
    return Row(name, 1.0, PINNED, measure, estimate(bytes_, runs), at_least=False, peers=True)


def beside_tcp(workers: int, bytes_: int, label: str) -> Row:
    def measure(lab: Lab, steps: int) -> Measured:
        bare = peers.round_trips(lab.part(workers, 0), bytes_, MORE * steps)
        return over(ours(lab, workers, bytes_, MORE * steps), {"bare": bare}, bytes_)

    name = f"n={workers} k=0: {label} over two round trips of bare TCP"
    return Row(name, 1.5, PINNED, measure, estimate(bytes_, 1, 4 * (workers - 1)), at_least=False, peers=True)


def rows() -> list[Row]:
    sizes = list(SIZES.items())
    small = [size for size in sizes if size[0] <= 65536]
    return [
        *(beside_peers(*size) for size in sizes),
        *(beside_peers(*size, strategy) for strategy in (*AUTO, "gather") for size in small),
        *(beside_tcp(n, *size) for n in (8, 2) for size in sizes),
    ]
