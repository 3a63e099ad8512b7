"""Measures the cost of a phase of the benchmark: CPU time and memory of each program, requests, and reconciliations."""

from __future__ import annotations

import re
import time
import urllib.request
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from wire.sampling import TICKS, processor_seconds

SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? ([-+.\w]+)(?: \d+)?$")
BUSY = ("user", "nice", "system", "irq", "softirq", "steal")  # kinds of CPU time that are not idle
Histogram = dict[float, float]  # upper bound of a bucket in seconds -> observations in it and below


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_mib(pid: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found.group(1)) / 1024 if found else 0.0


class Cost:
    """Measures the CPU time from its construction to end().

    end() returns the average number of cores that each program used, and under "others" the rest of the machine.
    """

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._pids = dict(pids)
        self._before = {name: cpu_seconds(pid) for name, pid in pids.items()}
        self._busy = processor_seconds(BUSY)
        self._start = time.monotonic()

    def end(self) -> dict[str, float]:
        seconds = time.monotonic() - self._start
        used = {name: cpu_seconds(pid) - self._before[name] for name, pid in self._pids.items()}
        used["others"] = max(0.0, processor_seconds(BUSY) - self._busy - sum(used.values()))
        return {name: round(cpu / seconds, 2) for name, cpu in used.items()}


def labels_of(text: str) -> dict[str, str]:
    return dict(re.findall(r'(\w+)="([^"]*)"', text or ""))


def requests_by_kind(metrics: str) -> Counter[str]:
    """Returns the API server's own counts of requests other than watches, by kind ("PATCH trainingjobs/status 200")."""
    counts: Counter[str] = Counter()
    for line in metrics.splitlines():
        if not line.startswith("apiserver_request_total{"):
            continue
        _, labels, value = SAMPLE.match(line).groups()  # type: ignore[union-attr]
        known = labels_of(labels)
        if known["verb"] in ("WATCH", "CONNECT"):
            continue
        name = "/".join(filter(None, (known["resource"], known["subresource"])))
        counts[f"{known['verb']} {name} {known['code']}"] += int(float(value))
    return counts


def reconciliations(address: str) -> Histogram:
    """Returns the histogram gleaner_reconcile_seconds, summed over all results."""
    buckets: Histogram = Counter()  # type: ignore[assignment]
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as answer:
        for raw in answer:
            line = raw.decode()
            if line.startswith("gleaner_reconcile_seconds_bucket"):
                _, labels, value = SAMPLE.match(line.strip()).groups()  # type: ignore[union-attr]
                buckets[float(labels_of(labels)["le"].replace("+Inf", "inf"))] += float(value)
    return dict(buckets)


def between(before: Histogram, after: Histogram) -> Histogram:
    return {bound: after[bound] - before.get(bound, 0) for bound in sorted(after)}


def quantile(histogram: Histogram, share: float) -> float:
    """Returns a quantile in milliseconds. It assumes that observations are spread evenly within each bucket."""
    rank = share * histogram[float("inf")]
    lower, below = 0.0, 0.0
    for bound, count in sorted(histogram.items()):
        if count >= rank and count > below:
            upper = lower if bound == float("inf") else bound
            return round(1000 * (lower + (upper - lower) * (rank - below) / (count - below)), 2)
        lower, below = bound, count
    return 0.0


def seconds_of(text: str) -> float:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S%z").timestamp()


def stages(jobs: list[Any], pods: list[Any]) -> dict[str, float]:
    """Returns the mean seconds that a job spent in each stage, computed from the objects' timestamps in whole
    seconds."""

    def turned(thing: Any, kind: str) -> float:
        times = [c["lastTransitionTime"] for c in thing["status"]["conditions"] if c["type"] == kind]
        return seconds_of(times[0])

    made = {job["metadata"]["name"]: seconds_of(job["metadata"]["creationTimestamp"]) for job in jobs}
    running = {job["metadata"]["name"]: turned(job, "Running") for job in jobs}
    waits: Counter[str] = Counter()
    for pod in pods:
        name = pod["metadata"]["labels"]["gleaner.dev/job"]
        if name not in made:
            continue
        moments = [
            made[name],
            seconds_of(pod["metadata"]["creationTimestamp"]),
            turned(pod, "PodScheduled"),
            turned(pod, "Ready"),
            running[name],
        ]
        stage_names = ("operator makes the pod", "scheduler binds it", "kwok runs it", "operator says Running")
        for stage, start, end in zip(stage_names, moments, moments[1:]):
            waits[stage] += end - start  # type: ignore[assignment]
    return {stage: round(total / len(made), 1) for stage, total in waits.items()}
