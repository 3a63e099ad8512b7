"""gleaner.torch over real jobs: the checks of torch_checks.py, ddp_checks.py and lasting_checks.py in programs."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import assert_passed, checks_of, run_job

pytest.importorskip("torch")

Outcome = tuple[subprocess.CompletedProcess[str], int]
WITH_DDP = ("ddp_checks.py", "lasting_checks.py")


@pytest.fixture(scope="module", params=[(3, 2)], ids=["3workers2summers"])
def operations(request: pytest.FixtureRequest) -> Outcome:
    workers, summers = request.param
    return run_job("torch_checks.py", workers=workers, summers=summers), workers


@pytest.mark.parametrize("check", checks_of("torch_checks.py"))
def test_torch(operations: Outcome, check: str) -> None:
    assert_passed(operations[0], check, ranks=operations[1])


@pytest.fixture(scope="module")
def with_ddp(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """Runs a program that joins DDP's process group, too; once each."""

    @functools.cache
    def run(program: str) -> subprocess.CompletedProcess[str]:
        meeting: Path = tmp_path_factory.mktemp("gloo") / "meeting"
        return run_job(program, str(meeting), workers=2, summers=1)

    return run


@pytest.mark.parametrize(
    ("program", "check"), [(program, check) for program in WITH_DDP for check in checks_of(program)]
)
def test_with_ddp(with_ddp: Callable[[str], subprocess.CompletedProcess[str]], program: str, check: str) -> None:
    assert_passed(with_ddp(program), check, ranks=2)


def test_ddp_learns_of_a_lost_rank(tmp_path: Path) -> None:
    done = run_job("ddp_checks.py", str(tmp_path / "meeting"), "lose a rank", workers=2, summers=1)
    assert "backward said: " in done.stdout, done.stdout + done.stderr
    assert "worker 1" in done.stdout.split("backward said: ")[1]


def test_ends_well(operations: Outcome, with_ddp: Callable[[str], subprocess.CompletedProcess[str]]) -> None:
    for done in (operations[0], *map(with_ddp, WITH_DDP)):
        assert done.returncode == 0, done.stderr
