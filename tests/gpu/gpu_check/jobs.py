"""Runs the programs of tests/gpu/programs as jobs, and gathers the results of their checks."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpu_check import layout, running

LONGEST_CHECK = 30  # seconds
MODULES = ("comm-lib/python", "tests/python/programs")  # gleaner; checking and small_training
ROUNDS = 6  # jobs of one program, at most: each one begins after the check at which the last one broke


@dataclass
class Job:
    """A program, and the job that runs it. `more` holds further flags of `gleaner run`."""

    name: str
    program: str
    workers: int = 2
    local_ranks: int = 1
    summers: int = 1
    check_limit: float = LONGEST_CHECK
    more: list[str] = field(default_factory=list)

    @property
    def ranks(self) -> int:
        return self.workers * self.local_ranks


def environment() -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(layout.ROOT / folder) for folder in MODULES),
        "PYTHONDONTWRITEBYTECODE": "1",
        "GLEANER_LIBRARY": str(layout.LIBRARY),
        "GLEANER_PROGRAM": str(layout.program("gleaner")),
        "GLOO_SOCKET_IFNAME": "lo",  # a machine's own name may lead to no address
        "NCCL_SOCKET_IFNAME": "lo",
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",  # without it, PyTorch refuses deterministic algorithms on GPUs
        "OMP_NUM_THREADS": "1",
    }


def gleaner_run(job: Job, command: list[str]) -> list[str]:
    counts = ["--workers", job.workers, "--local-ranks", job.local_ranks, "--summers", job.summers]
    patient = ["--start-timeout", 120, "--deadline", 30, "--no-progress"]
    flags = [*map(str, [*counts, *patient]), *job.more]
    return [str(layout.program("gleaner")), "run", *flags, "--", sys.executable, *command]


def checks_of(program: str) -> list[str]:
    """Returns the names of the checks of a program, in order."""
    return re.findall(r"^def check_(\w+)\(", (layout.PROGRAMS / program).read_text(), re.MULTILINE)


def run(job: Job, device: str, folder: Path, limit: float, patience: float) -> list[dict[str, Any]]:
    """Runs all checks of a job within `limit` seconds. Returns an entry with name, verdict and note for each check.

    A check that breaks its job (a crash, a hang, a broken session) fails, and the checks after it run in another job.
    """
    until = time.monotonic() + limit
    left, entries, why = checks_of(job.program), [], "no time was left"
    for round_number in range(ROUNDS):
        remaining = until - time.monotonic()
        if not left or remaining < 5:
            break
        results = folder / f"{job.name}-{round_number}"
        results.mkdir(parents=True)
        command = [str(layout.PROGRAMS / job.program), "--device", device, "--results", str(results)]
        command += ["--checks", ",".join(left), "--limit", str(job.check_limit * patience)]
        log = folder / f"{job.name}-{round_number}.log"
        outcome = running.run(gleaner_run(job, command), remaining, log, environment())
        found = verdicts(left, [events_of(results, rank) for rank in range(job.ranks)], outcome, remaining)
        entries += found
        if not found:  # no check began, and none would in another job
            entries.append({"check": left.pop(0), "verdict": "failed", "note": f"the job {outcome.reason(remaining)}"})
            why = "no check of the job began"
            break
        left = left[len(found) :]
    return entries + [{"check": name, "verdict": "not run", "note": why} for name in left]


def events_of(results: Path, rank: int) -> dict[str, dict[str, str]]:
    """Returns the last event of each check on a rank."""
    path = results / f"rank-{rank}.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return {event["check"]: event for event in map(json.loads, lines)}


def verdicts(
    names: Iterable[str], ranks: list[dict[str, dict[str, str]]], outcome: running.Outcome, limit: float
) -> list[dict[str, Any]]:
    """Returns the entries of the checks that began on some rank."""
    entries = []
    for name in names:
        events = [rank.get(name) for rank in ranks]
        if not any(events):
            break
        entries.append({"check": name, **judged(events, outcome, limit)})
    return entries


def is_failed(event: dict[str, str] | None) -> bool:
    return event is not None and event["event"] == "failed"


def judged(events: list[Any], outcome: running.Outcome, limit: float) -> dict[str, str]:
    failed = [f"rank {rank}: {event['note']}" for rank, event in enumerate(events) if is_failed(event)]
    if failed:
        return {"verdict": "failed", "note": "\n".join(failed)}
    unended = [rank for rank, event in enumerate(events) if event is None or event["event"] == "began"]
    if unended:
        who = ", ".join(map(str, unended))
        return {"verdict": "failed", "note": f"did not end on ranks {who}; the job {outcome.reason(limit)}"}
    skipped = [event for event in events if event["event"] == "skipped"]
    chosen = skipped[0] if skipped else next((event for event in events if event["note"]), events[0])
    return {"verdict": chosen["event"], "note": chosen["note"]}
