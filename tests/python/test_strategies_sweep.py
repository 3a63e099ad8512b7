"""Sweeps over jobs: strategies, numbers of workers, data types, sizes and local ranks, each with every bit checked.

A run takes a sample of small jobs, whose seed it prints; GLEANER_SWEEP_SEED takes another, and GLEANER_SWEEP=all takes
all jobs, in some hours:

    GLEANER_SWEEP=all python3 -m pytest -m long -s tests/python/test_strategies_sweep.py
"""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
from typing import NamedTuple

import pytest
from conftest import GLEANER, TIMEOUT, environment, patient

pytestmark = pytest.mark.long

SAMPLE = 48
WORKERS = range(2, 17)
DTYPES = ("fp32", "fp64", "fp16", "bf16", "int32")
SIZES = ("0", "8", "4KiB", "100008", "1MiB", "5MiB", "64MiB")
MOST_BYTES = 8 << 20  # of all ranks of a sampled job together, so that the sample takes less than a minute
ALGORITHMS = ("ring", "halving-doubling", "double-tree", "bcube", "blueconnect", "racks", "two-level")


class Job(NamedTuple):
    flags: tuple[str, ...]  # the strategy
    workers: int
    dtype: str
    size: str
    local_ranks: int

    def ranks(self) -> int:
        return self.workers * self.local_ranks

    def bytes(self) -> int:
        unit = {"KiB": 1 << 10, "MiB": 1 << 20}.get(self.size[-3:], 1)
        return int(self.size.removesuffix("KiB").removesuffix("MiB")) * unit * self.ranks()


def factorizations(number: int) -> list[tuple[int, ...]]:
    """Returns all ordered ways to write the number as a product of factors of at least 2."""
    found = [(number,)]
    for factor in range(2, number):
        if number % factor == 0:
            found += [(factor, *rest) for rest in factorizations(number // factor)]
    return found


def is_power(number: int, radix: int) -> bool:
    while number % radix == 0:
        number //= radix
    return number == 1


def strategies(workers: int) -> list[tuple[str, ...]]:
    """Returns the flags of all strategies that serve this number of workers."""
    found: list[tuple[str, ...]] = [("summers",), ("summers", "--summers", "2")]
    found += [("auto", "--bits", bits) for bits in ("RankOrder", "Schedule")]
    found += [(algorithm,) for algorithm in ALGORITHMS if algorithm not in ("racks", "bcube")]
    found += [("bcube", "--radix", str(radix)) for radix in range(2, workers + 1) if is_power(workers, radix)]
    found += [("blueconnect", "--stages", ",".join(map(str, stages))) for stages in factorizations(workers)]
    pairs = [(groups, workers // groups) for groups in range(1, workers + 1) if workers % groups == 0]
    found += [(name, "--stages", f"{a},{b}") for name in ("racks", "two-level") for a, b in pairs]
    return [("--strategy", *flags) for flags in found]


def all_jobs() -> list[Job]:
    return [
        Job(flags, workers, *rest)
        for workers in WORKERS
        for flags in strategies(workers)
        for rest in itertools.product(DTYPES, SIZES, (1, 2))
    ]


def sample(seed: int) -> list[Job]:
    """Takes every strategy in turn, so that none is missing in a sample of a few dozen jobs; mostly of few ranks."""
    dice = random.Random(seed)
    jobs: dict[str, list[Job]] = {}
    for job in all_jobs():
        if job.bytes() <= MOST_BYTES:
            jobs.setdefault(job.flags[1], []).append(job)
    names = sorted(jobs)
    weights = {name: [1 / job.ranks() ** 2.5 for job in jobs[name]] for name in names}
    turns = [names[i % len(names)] for i in range(SAMPLE)]
    return [dice.choices(jobs[name], weights[name])[0] for name in turns]


def check(job: Job) -> None:
    ranks = (*job.flags, "--workers", str(job.workers), "--local-ranks", str(job.local_ranks))
    expected = [] if job.flags[1] == "auto" else ["--strategy", job.flags[1]]
    command = [str(GLEANER), "run", *patient(ranks), "--", str(GLEANER), "bench", "push-pull", "--bytes", job.size]
    command += ["--dtype", job.dtype, "--steps", "2", "--verify", "--json", *expected]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, env=environment())
    assert done.returncode == 0, f"{job}: {done.stderr}"
    lines = [json.loads(line[line.index("{") :]) for line in done.stdout.splitlines() if '"sha256"' in line]
    assert len(lines) == job.workers, f"{job}: {done.stdout}"
    assert len({line["sha256"] for line in lines}) == 1, f"{job}: workers have different sums"


def test_every_bit_of_a_sample_is_as_expected() -> None:
    seed = int(os.environ.get("GLEANER_SWEEP_SEED", "1"))
    jobs = all_jobs() if os.environ.get("GLEANER_SWEEP") == "all" else sample(seed)
    failures = []
    for number, job in enumerate(jobs, 1):
        print(f"{number} of {len(jobs)} (seed {seed}): {job}", flush=True)
        try:
            check(job)
        except (AssertionError, subprocess.TimeoutExpired) as failure:
            failures.append(f"{job}: {failure}")
    assert not failures, "\n".join(failures)
