"""gleaner.torch over real jobs: the checks of programs/torch_checks.py and programs/ddp_checks.py."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conftest import assert_passed, checks_of, run_job

pytest.importorskip("torch")

Outcome = tuple[subprocess.CompletedProcess[str], int]


@pytest.fixture(scope="module", params=[(3, 2)], ids=["3workers2summers"])
def operations(request: pytest.FixtureRequest) -> Outcome:
    workers, summers = request.param
    return run_job("torch_checks.py", workers=workers, summers=summers), workers


@pytest.mark.parametrize("check", checks_of("torch_checks.py"))
def test_torch(operations: Outcome, check: str) -> None:
    assert_passed(operations[0], check, ranks=operations[1])


@pytest.fixture(scope="module")
def ddp(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    meeting: Path = tmp_path_factory.mktemp("gloo") / "meeting"
    return run_job("ddp_checks.py", str(meeting), workers=2, summers=1)


@pytest.mark.parametrize("check", checks_of("ddp_checks.py"))
def test_ddp(ddp: subprocess.CompletedProcess[str], check: str) -> None:
    assert_passed(ddp, check, ranks=2)


def test_ddp_learns_of_a_lost_rank(tmp_path: Path) -> None:
    done = run_job("ddp_checks.py", str(tmp_path / "meeting"), "lose a rank", workers=2, summers=1)
    assert "backward said: " in done.stdout, done.stdout + done.stderr
    assert "worker 1" in done.stdout.split("backward said: ")[1]


def test_ends_well(operations: Outcome, ddp: subprocess.CompletedProcess[str]) -> None:
    assert operations[0].returncode == 0, operations[0].stderr
    assert ddp.returncode == 0, ddp.stderr
