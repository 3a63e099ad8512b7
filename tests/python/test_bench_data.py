"""Tests that `gleaner bench push-pull` gives the results of the numpy reference in docs/bench-data.md."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import GLEANER, ROOT, TIMEOUT, Job, job


def reference() -> dict[str, Any]:
    """Returns the functions in the document's Python block for sums in rank order."""
    block = re.search(r"```python\n(import hashlib\n.*?)```", (ROOT / "docs" / "bench-data.md").read_text(), re.DOTALL)
    assert block, "docs/bench-data.md has no Python block"
    names: dict[str, Any] = {}
    exec(block[1], names)
    return names


def start_rank(started: Job, worker: int, local_rank: int, local_ranks: int, *flags: str) -> subprocess.Popen[str]:
    return started.start(
        [str(GLEANER), "bench", "push-pull", "--json", *flags],
        GLEANER_COORDINATOR=started.coordinator_address,
        GLEANER_WORKER=str(worker),
        GLEANER_LOCAL_RANK=str(local_rank),
        GLEANER_LOCAL_SIZE=str(local_ranks),
        GLEANER_ADDRESS="127.0.0.1:0",
        GLEANER_TOKEN_FILE=str(started.token),
    )


def bench(folder: Path, workers: int, local_ranks: int, *flags: str) -> list[dict[str, Any]]:
    """Runs a job with one summer. Returns the JSON lines of all workers."""
    with job(folder, workers, 1, "--local-ranks", str(local_ranks)) as started:
        ranks = [
            start_rank(started, worker, local_rank, local_ranks, *flags)
            for worker in range(workers)
            for local_rank in range(local_ranks)
        ]
        outcomes = [rank.communicate(timeout=TIMEOUT) for rank in ranks]
        for rank, (_, err) in zip(ranks, outcomes):
            assert rank.returncode == 0, err
    return [json.loads(line) for out, _ in outcomes for line in out.splitlines()]


@pytest.mark.parametrize("dtype, numpy_type", [("fp32", np.float32), ("fp16", np.float16)])
@pytest.mark.parametrize("local_ranks", [1, 2])
def test_sums_match_the_document(tmp_path: Path, dtype: str, numpy_type: type, local_ranks: int) -> None:
    size, steps, seed, workers = 100_000, 3, 11, 2
    flags = ("--bytes", str(size), "--steps", str(steps), "--seed", str(seed), "--dtype", dtype, "--verify")
    lines = bench(tmp_path, workers, local_ranks, *flags)
    names = reference()
    elements = size // np.dtype(numpy_type).itemsize
    sums = names["expected"](seed, steps - 1, workers, local_ranks, elements, numpy_type)
    assert sorted(line["worker"] for line in lines) == list(range(workers))
    for line in lines:
        assert line["sha256"] == names["sha256"](sums)
        assert line["bytes"] == size
        assert len(line["step_seconds"]) == steps
        assert line["verified"] is True


def test_a_wrong_bit_ends_the_job_and_is_named(tmp_path: Path) -> None:
    flags = ("--bytes", "4096", "--steps", "2", "--verify")
    with job(tmp_path, 2, 0) as started:
        ranks = [start_rank(started, worker, 0, 1, "--seed", str(worker), *flags) for worker in range(2)]
        outcomes = [rank.communicate(timeout=TIMEOUT) for rank in ranks]
        assert [rank.returncode for rank in ranks] == [1, 1]
    errors = "".join(err for _, err in outcomes)
    assert re.search(r"wrong sum at step 0: tensor 'tensor', element 0: expected 0x\w+ \(.*\), got 0x", errors), errors
    assert not any(out for out, _ in outcomes)
