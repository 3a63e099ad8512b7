"""Tests that the bits of tensors in blocks are those of docs/blocks_reference.py, over steps with error feedback."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from conftest import GLEANER, PROGRAMS, run_job

sys.path.insert(0, str(PROGRAMS))
from contributions import bench_reference, of_step

sys.path.insert(0, str(PROGRAMS.parents[2] / "docs"))
from blocks_reference import Codec, Sums

CODECS = [
    {"method": "int8"},
    {"method": "int8", "error_feedback": False, "momentum": 0.9},
    {"method": "int4", "seed": 3},
    {"method": "sign"},
    {"method": "top-k", "kept": 16, "momentum": 0.5},
    {"method": "random-k", "kept": 64, "seed": 2**64 - 1},
]
STEPS = 4


def check(codec: dict[str, Any], strategy: str, workers: int, local_ranks: int, elements: int) -> None:
    flags = ("--strategy", strategy, "--partition-bytes", "40000")
    shape = {"workers": workers, "local_ranks": local_ranks}
    done = run_job("block_bits.py", json.dumps(codec), str(elements), str(STEPS), summers=1, flags=flags, **shape)
    assert done.returncode == 0, done.stderr
    reports = [json.loads(line[line.index("{") :]) for line in done.stdout.splitlines() if '"sha256"' in line]
    assert len(reports) == workers * local_ranks
    schedule = bench_reference.schedule_of(reports[0]["plan"], workers, str(GLEANER))
    block = {"top-k": 6 * codec.get("kept", 0), "random-k": 4 * codec.get("kept", 0), "int4": 516}
    sizes = [size // block.get(codec["method"], 1028) for size in reports[0]["plan"]["partition_bytes"]]
    sums = Sums(Codec(**codec), "blocks", workers, elements, local_ranks)
    expected = []
    for step in range(STEPS):
        values = [of_step(step, rank, elements) for rank in range(workers * local_ranks)]
        average = sums.reduced(values, schedule, sizes, reports[0]["plan"]["ranks"], average=True)
        expected.append(bench_reference.sha256([average]))
    for report in reports:
        assert report["sha256"] == expected, (codec, strategy)


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec["method"])
@pytest.mark.parametrize("strategy", ["summers", "ring"])
def test_bits_are_those_of_the_reference(codec: dict[str, Any], strategy: str) -> None:
    """The last block has fewer values, the tensor has several partitions, and a sum of one step overflows."""
    check(codec, strategy, 3, 1, 300_007)


@pytest.mark.parametrize("codec", CODECS[3:5], ids=lambda codec: codec["method"])
def test_a_contribution_is_the_sum_of_local_ranks(codec: dict[str, Any]) -> None:
    check(codec, "gather", 2, 2, 20_000)


def test_an_error_names_what_ranks_compress_differently() -> None:
    done = run_job("block_differs.py", workers=2)
    assert "random-16 of seed 0" in done.stdout and "of seed 1" in done.stdout, done.stdout + done.stderr
    assert "declared 5000 elements of fp32" in done.stdout, "elements in memory, not blocks"
