"""Tests gleaner.byteps.torch, BytePS's names, in real jobs."""

from __future__ import annotations

import functools
import importlib
import subprocess
import sys
from collections.abc import Callable

import pytest
from conftest import PROGRAMS, ROOT, assert_passed, checks_of, run_job

pytest.importorskip("torch")
sys.path.insert(0, str(ROOT / "comm-lib" / "python"))

WORKERS = 3


@pytest.fixture(scope="module")
def job() -> Callable[[], subprocess.CompletedProcess[str]]:
    """Returns a function that runs the checks once."""
    return functools.cache(lambda: run_job("byteps_checks.py", workers=WORKERS, summers=2))


@pytest.mark.parametrize("check", checks_of("byteps_checks.py"))
def test_byteps(job: Callable[[], subprocess.CompletedProcess[str]], check: str) -> None:
    assert_passed(job(), check, ranks=WORKERS)


def test_ends_well(job: Callable[[], subprocess.CompletedProcess[str]]) -> None:
    assert job().returncode == 0, job().stderr


def test_the_checks_use_every_name() -> None:
    text = "".join((PROGRAMS / name).read_text() for name in ("byteps_checks.py", "byteps_rounds.py"))
    names = importlib.import_module("gleaner.byteps.torch").__all__
    assert [name for name in names if f"bps.{name}" not in text] == []


@pytest.mark.parametrize("expected", ["2", "3"])
def test_training_goes_on_after_suspend_and_resume(expected: str) -> None:
    done = run_job("byteps_rounds.py", expected, flags=("--min-workers", "2"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("trained on") == 2
    warned = [line for line in done.stdout.splitlines() if "warned:" in line]
    assert len(warned) == 2
    for line in warned:
        assert ("expected 3 workers, and the job has 2" in line) == (expected == "3"), line


def test_resume_needs_an_elastic_job() -> None:
    done = run_job("byteps_rounds.py", "2")
    assert done.returncode != 0
    assert "start it with --min-workers" in done.stderr
