"""Measures how a cost grows with one quantity at a time. Each line of points gets the exponent of a fitted power
law."""

from __future__ import annotations

import json
import math
import resource
import statistics
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Callable

from wire import jobs, ranks
from wire.efficiency import one
from wire.lab import Lab, Part, Setting
from wire.processes import Watch, processor_share
from wire.row import MIB
from wire.sampling import Sampler, processor_seconds
from wire.steps import Steps, paces

Points = Iterator[tuple[float, float]]
SMALL = 4096
TENSOR = 64  # bytes per tensor, in steps of many tensors
# All workers share this machine's cores, so the work of n workers takes n times as long as that of one.
NO_LIMIT = Setting(32, 32, "none")
LOOPBACK = Setting(2, 1, "")
SLOW = Setting(32, 16, "20mbit")
SLOW_STEP = 2 * MIB


@dataclass(frozen=True)
class Line:
    """A curve to measure. `measure` yields points (x, y) as it takes them, with y in `unit`."""

    name: str
    x: str
    unit: str
    setting: Setting
    measure: Callable[[Lab, int], Points]


def exponents(points: list[tuple[float, float]]) -> dict[str, float]:
    """Fits y = a x^e. Returns e for all points (least squares of the logarithms), and e for the last two points."""
    logs = [(math.log(x), math.log(y)) for x, y in points if x > 0 and y > 0]
    if len(logs) < 2:
        raise ValueError("an exponent needs two points above 0")
    mean_x, mean_y = (sum(each[axis] for each in logs) / len(logs) for axis in (0, 1))
    slope = sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs)
    (x0, y0), (x1, y1) = logs[-2:]
    return {"exponent": slope, "last_exponent": (y1 - y0) / (x1 - x0)}


def markdown(entries: list[dict[str, Any]]) -> str:
    """Returns a Markdown table of measured lines."""
    lines = ["| | from | to | exponent | at the end |", "|---|---|---|---|---|"]
    for entry in entries:
        if "error" in entry:
            lines.append(f"| {entry['line']} | failed | | | |")
            continue
        ends = [f"{entry['x']} {x:g}: {y:.3g} {entry['unit']}" for x, y in (entry["points"][0], entry["points"][-1])]
        numbers = f"{entry['exponent']:.2f} | {entry['last_exponent']:.2f}"
        lines.append(f"| {entry['line']} | {ends[0]} | {ends[1]} | {numbers} |")
    return "\n".join(lines)


WORKERS = (2, 4, 8, 16, 32)


def each_of(
    counts: tuple[int, ...], measure: Callable[[Lab, int], dict[str, float]], value: str
) -> Callable[[Lab, int], Points]:
    """Returns a measurement of one of the values that `measure` takes together, at each count."""

    def points(lab: Lab, steps: int) -> Points:
        for count in counts:
            yield count, measure(lab, count)[value]

    return points


def small_step(lab: Lab, n: int) -> dict[str, float]:
    """Measures the time of a small step of n workers, and each worker's CPU time for it and the barrier before it."""

    def measure() -> dict[str, float]:
        part = lab.part(n, 0)
        with Watch(part) as watch:
            found = jobs.measure(part, one(SMALL), 20_000 // n, 20)
        used = 0.0
        for samples in watch.samples.values():
            used += processor_share(samples, found.begins[0], found.ends[-1])
        return {"step": found.median, "processor": used / paces([found])[0] / n}

    return dict(lab.once(("small step", n), measure))


def by_summers(lab: Lab, steps: int) -> Points:
    for k in (1, 2, 4, 8, 16, 32):
        yield k, jobs.measure(lab.part(8, k), one(MIB), 5 * steps, 5).median


def seconds_over_bound(part: Part, steps: int) -> float:
    found = jobs.measure(part, one(SLOW_STEP), steps, 1)
    return found.median - jobs.bound(part, one(SLOW_STEP), found)


def over_bound(lab: Lab, steps: int) -> Points:
    for n in (4, 8, 16, 32):
        part = lab.part(n, 0)
        yield n, seconds_over_bound(part, steps)


def over_bound_by_summers(lab: Lab, steps: int) -> Points:
    for k in (1, 2, 4, 8):
        part = lab.part(8, k)
        yield k, seconds_over_bound(part, steps)


def counted(lab: Lab, count: int, steps: int) -> dict[str, float]:
    """Measures the time of a step of `count` small tensors, and the time from the job's start to its first step."""

    def measure() -> dict[str, float]:
        began = time.monotonic()
        many = max(3, min(5 * steps, 20_000 // count))
        found = jobs.one_run(lab.part(2, 1), jobs.write_list(lab.folder, count, TENSOR), many, 0)
        return {"step": Steps(found.begins[1:], found.ends[1:]).median, "start": found.begins[0] - began}

    return dict(lab.once(("tensors", count), measure))


COUNTS = (10, 100, 1000, 10_000, 100_000)


def by_tensors(lab: Lab, steps: int) -> Points:
    for count in COUNTS:
        yield count, counted(lab, count, steps)["step"]


def start_by_tensors(lab: Lab, steps: int) -> Points:
    for count in COUNTS:
        yield count, counted(lab, count, steps)["start"]


BUSY = ("user", "nice", "system", "irq", "softirq")


class Busy(Sampler):
    """Samples how long this machine's processors have been busy."""

    def __init__(self, period: float = 0.1) -> None:
        super().__init__(period)
        self.samples: list[tuple[float, float]] = []  # time, and the seconds of BUSY until then

    def sample(self) -> None:
        self.samples.append((time.monotonic(), processor_seconds(BUSY)))


def processors(samples: list[tuple[float, float]], begin: float, end: float) -> float:
    """Returns the mean number of busy processors from `begin` to `end`."""
    within = [sample for sample in samples if begin <= sample[0] <= end]
    if len(within) < 2:
        raise RuntimeError("too few samples of the processors: the measurement was too short")
    (first, before), (last, after) = within[0], within[-1]
    return (after - before) / (last - first)


def side_by_side(lab: Lab, count: int) -> dict[str, float]:
    """Measures `count` jobs that run at the same time, over the time in which all of them make steps.

    Returns the mean step time, and the CPU time for one step and the barrier before it.
    """

    def measure() -> dict[str, float]:
        part = lab.part(2, 1)
        many = max(4000, 50_000 // count)  # enough for some seconds, since the jobs do not start at the same moment
        bench = jobs.bench(one(SMALL), many, 20)
        with ExitStack() as stack:
            busy = stack.enter_context(Busy())
            started = [stack.enter_context(jobs.Job(part, bench, name=f"job{i}")) for i in range(count)]
            found = [ranks.steps_of(job.lines(jobs.TIMEOUT), part.n) for job in started]
        pace = sum(paces(found))
        used = processors(busy.samples, max(each.begins[0] for each in found), min(each.ends[-1] for each in found))
        return {"step": count / pace, "processor": used / pace}

    return dict(lab.once(("side by side", count), measure))


JOBS = (1, 2, 4, 8, 16, 32)


def planned(grows: str, value: str) -> Callable[[Lab, int], Points]:
    """Returns a measurement by plan_benchmark. `value` is "cpu_time" (in ms) or the counter "bytes"."""

    def measure(lab: Lab, steps: int) -> Points:
        command = [str(jobs.BUILD / "tests" / "plan_benchmark"), f"--benchmark_filter=^{grows}/"]
        command += ["--benchmark_format=json", "--benchmark_min_time=0.2"]

        def run() -> list[dict[str, Any]]:
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            return list(json.loads(done.stdout)["benchmarks"])

        for each in lab.once(("plan", grows), run):
            parts = dict(part.split(":") for part in each["name"].split("/")[1:])
            yield float(parts[grows]), each[value] * (1e-3 if value == "cpu_time" else 1)

    return measure


SESSIONS = (8, 32, 128, 512)
CHANGES = 11  # the first change, and ten more whose plans are hardly larger


def coordinated(lab: Lab, sessions: int) -> dict[str, float]:
    """Measures plan changes of a job with `sessions` ranks.

    "first" is the time of the job's first plan with tensors, from the last rank's Declare until all ranks have the
    Commit. "processor" is the CPU time per rank of one more change, of the coordinator and of the ranks' ends together.
    """

    def run(changes: int) -> tuple[float, float]:
        command = [str(jobs.BUILD / "tests" / "coordinator_scale"), "--sessions", str(sessions)]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([*command, "--changes", str(changes)], capture_output=True, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        return float(json.loads(done.stdout)["first_change_seconds"]), used

    def measure() -> dict[str, float]:
        few, many = [run(1) for _ in range(3)], [run(CHANGES) for _ in range(3)]
        used = statistics.median(each[1] for each in many) - statistics.median(each[1] for each in few)
        return {
            "first": statistics.median(each[0] for each in few + many),
            "processor": used / (CHANGES - 1) / sessions,
        }

    return dict(lab.once(("coordinated", sessions), measure))


def lines() -> list[Line]:
    """Returns all lines, ordered so that lines of one setting follow each other."""
    seconds = "s"
    return [
        Line("step of 4 KiB by workers, k = 0, no limit", "workers", seconds, NO_LIMIT,
             each_of(WORKERS, small_step, "step")),
        Line("processor time of each worker for it", "workers", seconds, NO_LIMIT,
             each_of(WORKERS, small_step, "processor")),
        Line("step of 1 MiB by summers, n = 8, no limit", "summers", seconds, NO_LIMIT, by_summers),
        Line("step of 2 MiB at 20 Mbit/s over its bound by workers, k = 0", "workers", seconds, SLOW, over_bound),
        Line("step of 2 MiB at 20 Mbit/s over its bound by summers, n = 8", "summers", seconds, SLOW,
             over_bound_by_summers),
        Line("step by tensors of 64 B, n = 2, k = 1", "tensors", seconds, LOOPBACK, by_tensors),
        Line("start to first step by tensors, n = 2, k = 1", "tensors", seconds, LOOPBACK, start_by_tensors),
        Line("step of 4 KiB by jobs side by side, n = 2, k = 1", "jobs", seconds, LOOPBACK,
             each_of(JOBS, side_by_side, "step")),
        Line("processor time of a step for it", "jobs", seconds, LOOPBACK, each_of(JOBS, side_by_side, "processor")),
        Line("planning by workers", "workers", seconds, LOOPBACK, planned("workers", "cpu_time")),
        Line("plan by workers", "workers", "bytes", LOOPBACK, planned("workers", "bytes")),
        Line("planning by tensors", "tensors", seconds, LOOPBACK, planned("tensors", "cpu_time")),
        Line("plan by tensors", "tensors", "bytes", LOOPBACK, planned("tensors", "bytes")),
        Line("first plan of 160 tensors by ranks", "ranks", seconds, LOOPBACK, each_of(SESSIONS, coordinated, "first")),
        Line("processor time for each rank of a change of it", "ranks", seconds, LOOPBACK,
             each_of(SESSIONS, coordinated, "processor")),
    ]  # fmt: skip
