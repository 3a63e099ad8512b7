"""scripts/demo from end to end, made small: what it prints, and that it fails when it should."""

from __future__ import annotations

import os
import subprocess

import pytest
from conftest import BUILD, ROOT, require_build

pytest.importorskip("sklearn")


def demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs it, and sees that it leaves none of its hosts behind."""
    require_build()
    small = ["--workers", "2", "--summers", "1", "--rate", "1gbit"]
    command = [str(ROOT / "scripts" / "demo"), *small, *arguments]
    running = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "GLEANER_BUILD": str(BUILD)},
    )
    out, err = running.communicate(timeout=150)
    assert f"glab-d{running.pid}-" not in subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout
    return subprocess.CompletedProcess(command, running.returncode, out, err)


def test_demo_trains_and_compares() -> None:
    done = demo()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "bit for bit" in done.stdout
    for row in ("bytes per step", "step time", "goodput", "k = 1", "k = 0"):
        assert row in done.stdout


def test_demo_fails_when_the_model_is_not_good_enough() -> None:
    done = demo("--epochs", "1")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "expected at least 97%" in done.stderr
