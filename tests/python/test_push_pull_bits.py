"""Tests that `gleaner bench push-pull` gives the bits that docs/bench-data.md defines.

The bits of a sum do not depend on the number of summers or on the partition size. This test computes the expected sums
with numpy alone, from the definitions of the data and of the order of summation.
"""

from __future__ import annotations

import functools
import hashlib
import json
import subprocess

import numpy as np
import pytest
from conftest import GLEANER, TIMEOUT, environment, patient

SEED = 7
STEPS = 2
ELEMENTS = 30_001


def splitmix64(x: np.ndarray) -> np.ndarray:
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def values(step: int, rank: int, count: int) -> np.ndarray:
    """Returns the fp32 data of one rank in one step."""
    one = np.array([SEED ^ step], dtype=np.uint64)
    base = splitmix64(splitmix64(one) ^ np.uint64(rank))
    bits = splitmix64(base ^ np.arange(count, dtype=np.uint64))
    return ((bits >> np.uint64(40)).astype(np.float64) * 2.0**-23 - 1.0).astype(np.float32)


def to_bf16(x: np.ndarray) -> np.ndarray:
    """Rounds fp32 to the nearest bf16, ties to even. Returns the bits. Does not handle NaN, which this data lacks."""
    bits = x.view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)


def from_bf16(x: np.ndarray) -> np.ndarray:
    return (x.astype(np.uint32) << np.uint32(16)).view(np.float32)


ROUND = {"fp32": lambda x: x, "fp16": lambda x: x.astype(np.float16), "bf16": to_bf16}
WIDEN = {"fp32": lambda x: x, "fp16": lambda x: x.astype(np.float32), "bf16": from_bf16}


def ordered_sum(parts: list[np.ndarray]) -> np.ndarray:
    return functools.reduce(np.add, parts)


@functools.cache
def expected_sha256(dtype: str, workers: int, local_ranks: int, elements: int = ELEMENTS) -> str:
    with np.errstate(over="ignore"):
        ranks = [WIDEN[dtype](ROUND[dtype](values(STEPS - 1, r, elements))) for r in range(workers * local_ranks)]
    by_worker = [ordered_sum(ranks[w * local_ranks : (w + 1) * local_ranks]) for w in range(workers)]
    return hashlib.sha256(ROUND[dtype](ordered_sum(by_worker)).tobytes()).hexdigest()


def bench(workers: int, summers: int, local_ranks: int, dtype: str, *run_flags: str) -> list[dict]:
    size = {"fp32": 4, "fp16": 2, "bf16": 2}[dtype]
    command = [
        str(GLEANER), "run", "--workers", str(workers), "--summers", str(summers),
        "--local-ranks", str(local_ranks), *patient(run_flags), "--",
        str(GLEANER), "bench", "push-pull", "--bytes", str(ELEMENTS * size), "--steps", str(STEPS),
        "--dtype", dtype, "--seed", str(SEED), "--verify", "--json",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, env=environment())
    assert done.returncode == 0, done.stderr
    lines = [line[line.index("{") :] for line in done.stdout.splitlines() if '"sha256"' in line]
    return sorted((json.loads(line) for line in lines), key=lambda report: report["worker"])


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
@pytest.mark.parametrize("summers", [0, 1, 3, 5])
def test_bits_do_not_depend_on_summers(dtype: str, summers: int) -> None:
    reports = bench(3, summers, 1, dtype)
    assert [report["worker"] for report in reports] == [0, 1, 2]
    assert {report["sha256"] for report in reports} == {expected_sha256(dtype, 3, 1)}
    assert all(len(report["step_seconds"]) == STEPS for report in reports)


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
@pytest.mark.parametrize("summers", [0, 2])
def test_local_ranks_do_not_round_their_partial_sum(dtype: str, summers: int) -> None:
    reports = bench(2, summers, 2, dtype)
    assert {report["sha256"] for report in reports} == {expected_sha256(dtype, 2, 2)}


@pytest.mark.parametrize("partition_bytes", ["4KiB", "16KiB", "4MiB"])
def test_bits_do_not_depend_on_partition_size(partition_bytes: str) -> None:
    reports = bench(3, 1, 1, "bf16", "--partition-bytes", partition_bytes)
    assert {report["sha256"] for report in reports} == {expected_sha256("bf16", 3, 1)}


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
def test_local_ranks_of_one_worker_sum_like_workers(dtype: str) -> None:
    alone = bench(1, 0, 3, dtype)
    assert {report["sha256"] for report in alone} == {expected_sha256(dtype, 3, 1)}
