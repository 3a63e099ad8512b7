"""Tests gleaner.torch in real jobs: runs all checks of the programs in ALONE and WITH_DDP, which are in programs/."""

from __future__ import annotations

import functools
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import assert_passed, checks_of, run_job

pytest.importorskip("torch")

Run = Callable[[str], subprocess.CompletedProcess[str]]
WORKERS = 3
ALONE = ("torch_checks.py", "backward_checks.py", "optimizers_checks.py", "compression_checks.py")
ALONE += ("block_checks.py", "fusion_checks.py", "pack_tuning_checks.py", "lars_checks.py", "sparsity_checks.py")
ALONE += ("sparse_cross_barrier_checks.py",)
WITH_DDP = ("ddp_checks.py", "sparse_ddp_checks.py", "lasting_checks.py", "job_defaults_checks.py")
VARIABLES = {"job_defaults_checks.py": {"GLEANER_COMPRESSION": "fp16", "GLEANER_FUSION_BYTES": "inf"}}


@pytest.fixture(scope="module")
def alone() -> Run:
    """Returns a function that runs a program. It runs each program once."""
    return functools.cache(lambda program: run_job(program, workers=WORKERS, summers=2))


@pytest.mark.parametrize(("program", "check"), [(program, check) for program in ALONE for check in checks_of(program)])
def test_torch(alone: Run, program: str, check: str) -> None:
    assert_passed(alone(program), check, ranks=WORKERS)


def test_the_summary_tells_the_chosen_packs(alone: Run) -> None:
    done = alone("pack_tuning_checks.py")
    assert re.search(r"^ +packs +\S.* predicted to be averages ", done.stdout + done.stderr, re.MULTILINE)


@pytest.fixture(scope="module")
def with_ddp(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Returns a function that runs a program which also joins DDP's process group. It runs each program once."""

    @functools.cache
    def run(program: str) -> subprocess.CompletedProcess[str]:
        meeting: Path = tmp_path_factory.mktemp("gloo") / "meeting"
        return run_job(program, str(meeting), workers=2, summers=1, variables=VARIABLES.get(program, {}))

    return run


@pytest.mark.parametrize(
    ("program", "check"), [(program, check) for program in WITH_DDP for check in checks_of(program)]
)
def test_with_ddp(with_ddp: Run, program: str, check: str) -> None:
    assert_passed(with_ddp(program), check, ranks=2)


def test_ddp_gets_the_error_of_a_lost_rank(tmp_path: Path) -> None:
    done = run_job("ddp_checks.py", str(tmp_path / "meeting"), "lose a rank", workers=2, summers=1)
    assert "backward said: " in done.stdout, done.stdout + done.stderr
    assert "worker 1" in done.stdout.split("backward said: ")[1]


def test_ends_well(alone: Run, with_ddp: Run) -> None:
    for done in (*map(alone, ALONE), *map(with_ddp, WITH_DDP)):
        assert done.returncode == 0, done.stderr
