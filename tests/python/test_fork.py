"""Tests fork(): a child that uses its parent's session gets an error and does not hang; other children do no harm."""

from __future__ import annotations

import pytest
from conftest import run_job


@pytest.mark.parametrize(("what", "said"), [("init", 4), ("push_pull", 2)])
def test_a_forked_child_gets_an_error(what: str, said: int) -> None:
    job = run_job("forking.py", what)
    assert job.returncode == 0, job.stdout + job.stderr
    told = [line for line in job.stdout.splitlines() if "child was told" in line]
    assert len(told) == said, job.stdout + job.stderr
    assert all("'spawn'" in line for line in told), told
    assert job.stdout.count("summed") == 2


@pytest.mark.parametrize(
    ("what", "said"), [("exit", "child ended"), ("multiprocessing", "pool worked"), ("loader", "loader worked")]
)
def test_children_that_do_not_use_the_session_do_no_harm(what: str, said: str) -> None:
    if what == "loader":
        pytest.importorskip("torch")
    job = run_job("forking.py", what)
    assert job.returncode == 0, job.stdout + job.stderr
    assert job.stdout.count(said) == 2 and job.stdout.count("summed") == 2, job.stdout + job.stderr


def test_ranks_that_are_forked_before_init() -> None:
    job = run_job("forking.py", "before")
    assert job.returncode == 0, job.stdout + job.stderr
    assert job.stdout.count("child did it") == 2, job.stdout + job.stderr
