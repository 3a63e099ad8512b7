"""Tests gleaner.jax in real jobs. tests/python/current_frameworks.sh runs it with JAX and optax from PyPI."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conftest import assert_digits_have_equal_bits, assert_passed, checks_of, programs_of, run_job

pytest.importorskip("jax")
pytest.importorskip("optax")

PROGRAM = "jax_checks.py"
SHAPES = [(2, 1), (3, 0)]


@pytest.fixture(scope="module", params=SHAPES, ids=lambda shape: f"{shape[0]}workers{shape[1]}summers")
def outcome(request: pytest.FixtureRequest) -> tuple[subprocess.CompletedProcess[str], int]:
    workers, summers = request.param
    return run_job(PROGRAM, workers=workers, summers=summers), workers


@pytest.mark.parametrize("check", checks_of(PROGRAM))
def test_jax(outcome: tuple[subprocess.CompletedProcess[str], int], check: str) -> None:
    assert_passed(outcome[0], check, ranks=outcome[1])


def test_every_rank_ends_well(outcome: tuple[subprocess.CompletedProcess[str], int]) -> None:
    assert outcome[0].returncode == 0, outcome[0].stderr


@pytest.mark.parametrize("way", ["shutdown", "exit"])
def test_callbacks_end_before_the_rank_leaves(way: str) -> None:
    done = run_job("jax_unfinished.py", way)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no session" not in done.stderr, done.stderr


def test_callbacks_on_one_cpu() -> None:
    done = run_job("jax_one_cpu.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("averaged") == 2, done.stdout + done.stderr


@pytest.mark.parametrize("text", programs_of("frameworks.md", "JAX"))
def test_programs_of_the_document(text: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(text)
    done = run_job(program)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("loss ") == 2, done.stdout + done.stderr


def test_digits() -> None:
    pytest.importorskip("sklearn")
    assert_digits_have_equal_bits("train_jax.py")
