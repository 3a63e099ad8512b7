"""Rows about other costs than step time: CPU time, memory, and the effect on other jobs with summers on the machine."""

from __future__ import annotations

import math
import statistics
from typing import Any, Callable

from wire import iperf, jobs, kernel, ranks
from wire.efficiency import EIGHT, GIGABIT, STEP, nominal_bound, one
from wire.lab import Lab, Part, Setting
from wire.processes import Watch, between, processor_share
from wire.row import JOB_SECONDS, Measured, Row
from wire.steps import Steps, paces, spread

NO_LIMIT = Setting(2, 2, "none")
NO_LIMIT_STEP_SECONDS = 0.15  # approximate duration of a step of STEP bytes; measured
IPERF_SECONDS = 8
WATCHED_SECONDS = 6.0
LONG, SMALL = 10_000, 16384  # number of steps, and bytes of each step, over which memory must stay constant
SAMPLE_BYTES = 16  # bytes per step that `bench push-pull` itself keeps: when the step began and ended


def processor(setting: Setting, step_seconds: float) -> Callable[[Lab, int], Measured]:
    """Returns a measurement of a summer's CPU time per received byte, over that of iperf3 and the sum kernel.

    Uses all hosts of `setting`, whose summers own equal parts and all partitions. A step takes about `step_seconds`,
    from which the measurement computes how many steps Watch needs."""

    def measure(lab: Lab, steps: int) -> Measured:
        part = lab.part(setting.workers, setting.summers)
        with Watch(part) as watch:
            found = jobs.measure(part, one(STEP), enough_to_watch(step_seconds, steps))
        begin, end = found.begins[0], found.ends[-1]
        received = STEP / part.k * part.n * len(found.ends)  # bytes that each summer received
        ours = [processor_share(watch.samples[host], begin, end) * (end - begin) / received for host in part.summers]
        pairs = list(zip(part.summers, part.workers))
        bare = {
            "receive": iperf.processor_seconds_per_byte(lab, pairs, IPERF_SECONDS, sends=False),
            "send": iperf.processor_seconds_per_byte(lab, pairs, IPERF_SECONDS, sends=True),
            "sum": kernel.seconds_per_byte(part.n, 16384),
        }
        figures = {f"{name}_seconds_per_gb": 1e9 * value for name, value in bare.items()}
        figures |= {"summer_seconds_per_gb": 1e9 * statistics.mean(ours), "step": found.median}
        return Measured(statistics.mean(ours) / sum(bare.values()), spread(ours), figures)

    return measure


def enough_to_watch(step_seconds: float, steps: int) -> int:
    """Returns a number of steps that lasts WATCHED_SECONDS at least.

    The kernel counts CPU time in ticks of 10 ms, and Watch samples it four times a second.
    """
    return max(steps, math.ceil(WATCHED_SECONDS / step_seconds))


def processor_row(hosts: str, setting: Setting, step_seconds: float) -> Row:
    def seconds(steps: int) -> float:
        return JOB_SECONDS + (enough_to_watch(step_seconds, steps) + 2) * step_seconds + 2 * IPERF_SECONDS + 4

    name = f"{hosts}: a summer's processor time over iperf3's and the kernel's"
    return Row(name, 1.25, setting, processor(setting, step_seconds), seconds, at_least=False)


def two_jobs(lab: Lab, steps: int) -> dict[str, Any]:
    """Measures two jobs of four workers each, whose summers run on the same four hosts.

    The links of these hosts limit both jobs. Each job has its own summer processes.
    """
    first, second = lab.part(4, 4), lab.part(4, 4, first_worker=4)
    alone = jobs.one_run(first, one(STEP), steps)
    bench = jobs.bench(one(STEP), steps)
    with jobs.Job(first, bench, name="one") as a, jobs.Job(second, bench, name="two") as b:
        both = [ranks.steps_of(job.lines(jobs.TIMEOUT), 4) for job in (a, b)]
    return {"alone_steps_per_second": paces([alone])[0], "both_steps_per_second": paces(both)}


def shared(lab: Lab, steps: int) -> dict[str, Any]:
    return dict(lab.once(("two jobs", steps), lambda: two_jobs(lab, steps)))


def sum_of_jobs(lab: Lab, steps: int) -> Measured:
    figures = shared(lab, steps)
    return Measured(sum(figures["both_steps_per_second"]) / figures["alone_steps_per_second"], 0.0, figures)


def share_of_jobs(lab: Lab, steps: int) -> Measured:
    figures = shared(lab, steps)
    both = figures["both_steps_per_second"]
    return Measured(min(both) / max(both), 0.0, figures)


def long_run(lab: Lab) -> tuple[Watch, Steps, Part]:
    part = lab.part(2, 2)
    with Watch(part) as watch:
        found = jobs.measure(part, one(SMALL), LONG)
    return watch, found, part


def most_memory(lab: Lab) -> dict[str, int]:
    """Measures the peak memory of a worker beyond its gradients, and of a summer, in steps of STEP bytes."""
    part = lab.part(8, 8)
    with Watch(part) as watch:
        jobs.measure(part, one(STEP), 3)
    most = {host: max(each.most_resident_bytes for each in watch.samples[host]) for host in watch.samples}
    return {
        "worker_bytes_beyond_64_mib_in_and_out": max(most[host] for host in part.workers) - 2 * STEP,
        "summer_bytes_for_64_mib": max(most[host] for host in part.summers),
    }


def memory(kind: str) -> Row:
    def measure(lab: Lab, steps: int) -> Measured:
        watch, found, part = lab.once("long run", lambda: long_run(lab))
        figures: dict[str, Any] = dict(lab.once("most memory", lambda: most_memory(lab)))
        ratios = []
        for host in part.workers if kind == "worker" else part.summers:
            taken = between(watch.samples[host], found.ends[LONG // 10], found.ends[-1])
            kept = SAMPLE_BYTES * LONG * 9 // 10 if kind == "worker" else 0
            grown = taken[-1].resident_bytes - kept - taken[0].resident_bytes
            ratios.append(1 + grown / taken[0].resident_bytes)
            figures[f"{host}_bytes_per_1000_steps"] = grown / 9
            figures[f"{host}_bytes"] = taken[-1].resident_bytes
        return Measured(max(ratios), 0.0, figures)

    name = f"n=2 k=2: a {kind}'s memory after 10,000 steps over that after 1,000"
    once = kind == "worker"
    estimated = 20 + 8 * nominal_bound(EIGHT, 8, 8, STEP) if once else 0
    return Row(name, 1.02, EIGHT, measure, lambda _: estimated, at_least=False)


def rows() -> list[Row]:
    step, four = nominal_bound(EIGHT, 8, 8, STEP), nominal_bound(EIGHT, 4, 4, STEP)
    return [
        processor_row("n=8 k=8", EIGHT, step),
        Row("n=4 k=4: steps of two jobs on the same summers beside one's", 0.95, EIGHT, sum_of_jobs,
            lambda steps: 2 * JOB_SECONDS + 3 * (steps + 2) * four),
        Row("n=4 k=4: the slower of two jobs beside the faster", 0.95, EIGHT, share_of_jobs, lambda _: 0),
        memory("worker"),
        memory("summer"),
    ]  # fmt: skip


def fast_rows() -> list[Row]:
    """Returns rows on fast links. The faster the links, the more bytes a summer finds each time that it wakes up."""
    return [
        processor_row("n=2 k=2 at 1 Gbit/s", GIGABIT, nominal_bound(GIGABIT, 2, 2, STEP)),
        processor_row("n=2 k=2 without limit", NO_LIMIT, NO_LIMIT_STEP_SECONDS),
    ]
