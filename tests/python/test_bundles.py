"""Tests gleaner.bundles, which gleaner.jax and gleaner.tensorflow use, in real jobs with numpy alone."""

from __future__ import annotations

import subprocess
import sys

import numpy
import pytest
from conftest import ROOT, assert_passed, checks_of, run_job

sys.path.insert(0, str(ROOT / "comm-lib" / "python"))
from gleaner.bundles import Bundle, difference

PROGRAM = "bundle_checks.py"
SHAPES = [(2, 1), (3, 0)]


@pytest.fixture(scope="module", params=SHAPES, ids=lambda shape: f"{shape[0]}workers{shape[1]}summers")
def outcome(request: pytest.FixtureRequest) -> tuple[subprocess.CompletedProcess[str], int]:
    workers, summers = request.param
    return run_job(PROGRAM, workers=workers, summers=summers), workers


@pytest.mark.parametrize("check", checks_of(PROGRAM))
def test_bundles(outcome: tuple[subprocess.CompletedProcess[str], int], check: str) -> None:
    assert_passed(outcome[0], check, ranks=outcome[1])


def test_leaving_ends_the_call_of_another_thread() -> None:
    done = run_job("bundle_closing.py", flags=("--grace", "1"))
    assert "left" in done.stdout, done.stdout + done.stderr


def bundle(operation: str = "sum", name: str | None = None, **members: int) -> Bundle:
    return Bundle.of(operation, name, [(each, numpy.empty(size, "f4")) for each, size in members.items()])


def test_difference_names_the_first_array() -> None:
    assert difference(bundle(a=1, b=2, c=3), bundle(a=1, b=3, c=4)) == (
        "'b', float32[2], as array 1",
        "'b', float32[3], as array 1",
    )


def test_difference_counts_arrays() -> None:
    assert difference(bundle(a=1, b=2), bundle(a=1)) == ("sum of 2 arrays", "sum of 1 arrays")


def test_difference_names_the_operation() -> None:
    ours, theirs = difference(bundle(a=1), bundle("average", "x", a=1))
    assert (ours, theirs) == ("sum of 1 arrays", "average of 1 arrays named 'x'")


def test_unnamed_bundles_have_tensors_of_their_own() -> None:
    prefixes = {each.prefix() for each in (bundle(a=1), bundle(a=2), bundle(b=1), bundle("average", a=1))}
    assert len(prefixes) == 4
    assert bundle(a=1).prefix() == bundle(a=1).prefix()
    assert bundle(name="x", a=1).prefix() == "x"
