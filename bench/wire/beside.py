"""Rows that compare with Gloo and Open MPI: a peer's step time over Gleaner's."""

from __future__ import annotations

from wire import jobs, peers
from wire.efficiency import EIGHT, STEP, nominal_bound, one
from wire.lab import Lab, Setting
from wire.row import JOB_SECONDS, Measured, Row, best_of, quotient
from wire.steps import Steps

LOOPBACK = Setting(2, 2, rate="")
MANY, SMALL = 1000, 16384
# Durations of every_peer() in units of the bound, for estimates: SLOWEST for the first run of each peer, NEAR per step
# of the peers that are measured further. Both are measured values.
SLOWEST, NEAR = 25.0, 6.0


def every_peer(lab: Lab, workers: int, bytes_: int, steps: int) -> dict[str, Steps]:
    part = lab.part(workers, 0)
    return lab.once(("peers", workers, bytes_, steps), lambda: peers.fastest(part, [bytes_], steps))


def beside_peers(name: str, aim: float, setting: Setting, workers: int, summers: int, seconds: float) -> Row:
    """Compares with the best peer. `seconds` is the approximate duration of one of Gleaner's steps."""

    def measure(lab: Lab, steps: int) -> Measured:
        others = every_peer(lab, workers, STEP, max(3, steps // 2))
        ours = jobs.measure(lab.part(workers, summers), one(STEP), steps)
        best, figures = best_of(others, ours)
        return quotient(best, ours, figures)

    def estimate(steps: int) -> float:
        # The row without summers measures the peers for both rows.
        theirs = 0.0 if summers and not setting.loopback else SLOWEST + NEAR * (steps // 2 + 2)
        return JOB_SECONDS + (steps + 2 + theirs) * seconds

    return Row(name, aim, setting, measure, estimate, peers=True)


def small_tensors(lab: Lab, steps: int) -> Steps:
    listed = jobs.write_list(lab.folder, MANY, SMALL)
    return lab.once(("many", steps), lambda: jobs.measure(lab.part(8, 0), listed, steps))


def beside_gloo(lab: Lab, steps: int) -> Measured:
    others = peers.fastest(lab.part(8, 0), [SMALL] * MANY, max(3, steps // 2), mpi_too=False)
    best, figures = best_of(others, small_tensors(lab, steps))
    return quotient(best, small_tensors(lab, steps), figures)


def beside_fused(lab: Lab, steps: int) -> Measured:
    many = small_tensors(lab, steps)
    fused = jobs.measure(lab.part(8, 0), one(MANY * SMALL), steps)
    return quotient(fused, many, {"one": fused.median, "many": many.median})


def beside_one_rank(lab: Lab, steps: int) -> Measured:
    alone = jobs.measure(lab.part(8, 8), one(STEP), steps)
    both = jobs.measure(lab.part(8, 8), one(STEP), steps, local_ranks=2)
    return quotient(alone, both, {"one": alone.median, "two": both.median})


def shaped_rows() -> list[Row]:
    alone, helped = (nominal_bound(EIGHT, 8, k, STEP) for k in (0, 8))
    small = nominal_bound(EIGHT, 8, 0, MANY * SMALL)
    # The best peers reach the bound of all-reduce, so summers can gain at most the ratio of the two bounds.
    with_summers = 0.985 * alone / helped
    return [
        beside_peers("n=8 k=0: beside the best of Gloo and Open MPI", 1.0, EIGHT, 8, 0, alone),
        beside_peers("n=8 k=8: beside the best of Gloo and Open MPI", with_summers, EIGHT, 8, 8, helped),
        Row("n=8 k=0: 1,000 tensors of 16 KiB beside the best of Gloo", 1.0, EIGHT, beside_gloo,
            lambda steps: 3 * small * (SLOWEST + NEAR * steps / 2) + steps * small, peers=True),
        Row("n=8 k=0: 1,000 tensors of 16 KiB beside one of 16 MB", 0.9, EIGHT, beside_fused,
            lambda steps: 2 * JOB_SECONDS + (steps + 2) * small),
        Row("n=8 k=8: two local ranks beside one", 0.95, EIGHT, beside_one_rank,
            lambda steps: 2 * (JOB_SECONDS + (steps + 2) * helped)),
    ]  # fmt: skip


def loopback_rows() -> list[Row]:
    # Only the CPU limits these steps, and with summers twice as many bytes pass through it.
    return [beside_peers("n=2 k=2 on the loopback: beside the best of Gloo and Open MPI", 0.5, LOOPBACK, 2, 2, 0.1)]
