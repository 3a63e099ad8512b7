"""Tests scripts/demo from end to end in a small size: its output, and its failure when a check of the demo fails."""

from __future__ import annotations

import argparse
import importlib.machinery
import os
import re
import signal
import subprocess
import types

import pytest
from conftest import BUILD, ROOT, TIMEOUT, require_build, summers_of

pytest.importorskip("sklearn")


def demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the demo, and checks that none of its hosts is left."""
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
    out, err = running.communicate(timeout=TIMEOUT)
    assert f"glab-d{running.pid}-" not in subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout
    return subprocess.CompletedProcess(command, running.returncode, out, err)


@pytest.mark.long
def test_demo_trains_and_compares() -> None:
    done = demo()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "bit for bit" in done.stdout
    assert "reached inproc: worker/0; " in done.stdout
    for row in ("bytes per step", "step time", "goodput", "k = 1", "k = 0"):
        assert row in done.stdout
    if "is a network namespace" in done.stdout:
        figures = re.search(r"efficiency \(bound / step time\) +([\d.]+)% +([\d.]+)%", done.stdout)
        assert figures is not None, done.stdout
        assert all(0 < float(figure) <= 100 for figure in figures.groups()), done.stdout
        assert "while workers compute, each link's shaper saves up" in done.stdout


def demo_program() -> types.ModuleType:
    loader = importlib.machinery.SourceFileLoader("demo_program", str(ROOT / "scripts" / "demo"))
    module = types.ModuleType(loader.name)
    module.__file__ = loader.path
    loader.exec_module(module)
    return module


def test_the_bound_counts_what_a_shapers_bucket_lets_through() -> None:
    """A link that sends a full bucket at once, and the rest at its rate, is as fast as the bound."""
    program = demo_program()
    arguments = argparse.Namespace(rate="100mbit")
    wire_bytes = 700_000
    run = {"bound_seconds": wire_bytes * 8 / 100e6}
    fastest = (wire_bytes - program.BUCKET) * 8 / 100e6
    assert program.bound_seconds(arguments, run) == pytest.approx(fastest)
    assert f"less {program.BUCKET * 8 / 100e6 * 1e3:.1f} ms" in program.about_bound(arguments)


@pytest.mark.long
def test_demo_fails_when_the_model_is_not_good_enough() -> None:
    done = demo("--epochs", "1")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "expected at least 97%" in done.stderr


@pytest.mark.long
@pytest.mark.parametrize("killed", [1, 2], ids=["one", "all"])
def test_the_demo_survives_killed_summers(killed: int) -> None:
    """The first training continues and reports the loss. Its bits are right, because the demo succeeds."""
    require_build()
    running = subprocess.Popen(
        [str(ROOT / "scripts" / "demo"), "--workers", "2", "--summers", "2", "--rate", "1gbit"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "GLEANER_BUILD": str(BUILD)},
    )
    seen = ""
    for line in running.stdout:
        seen += line
        if "epoch  2/10" in line:
            break
    summers = summers_of(running.pid)
    assert len(summers) == 2, seen
    for summer in summers[:killed]:
        os.kill(summer, signal.SIGKILL)
    seen += running.communicate(timeout=TIMEOUT)[0]
    assert running.returncode == 0, seen
    first_training = seen.split("== 2/4")[0]
    assert first_training.count("is lost") == killed, seen
    assert "epoch 10/10" in first_training
    assert "bit for bit" in seen.split("== 4/4")[1]
    assert f"{killed} of 2 summers were lost during the training" in seen
