"""Inputs that stay where they are, in a real job: the checks of programs/lasting_checks.py."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conftest import assert_passed, checks_of, run_job

pytest.importorskip("torch")


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    meeting: Path = tmp_path_factory.mktemp("gloo") / "meeting"
    return run_job("lasting_checks.py", str(meeting), workers=2, summers=1)


@pytest.mark.parametrize("check", checks_of("lasting_checks.py"))
def test_lasting(lasting: subprocess.CompletedProcess[str], check: str) -> None:
    assert_passed(lasting, check, ranks=2)


def test_ends_well(lasting: subprocess.CompletedProcess[str]) -> None:
    assert lasting.returncode == 0, lasting.stderr
