"""Tests that `gleaner run` shows the job's progress on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import GLEANER, PROGRAMS, environment, require_build


def on_a_terminal(*flags: str, steps: int) -> str:
    """Runs a job of `steps` steps, ten per second. Returns the output of `gleaner run` on a terminal."""
    require_build()
    ours, theirs = pty.openpty()
    command = [str(GLEANER), "run", "--workers", "2", *flags, "--", sys.executable, str(PROGRAMS / "pacing.py")]
    job = subprocess.Popen([*command, str(steps)], stdout=theirs, stderr=theirs, env=environment())
    os.close(theirs)
    text = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the last writer has closed the terminal
            break
        text += piece
    os.close(ours)
    assert job.wait() == 0, text
    return text.decode()


@pytest.mark.parametrize("flags", [(), ("--no-progress",)])
def test_a_terminal_shows_a_line_of_progress(flags: tuple[str, ...]) -> None:
    text = on_a_terminal(*flags, steps=60)
    shown = [piece for piece in text.split("\r\x1b[K") if piece.startswith("gleaner: step ")]
    assert bool(shown) == (not flags), text
    if shown:
        assert "goodput" in shown[-1], text
        assert "gleaner: step" not in text.split("\r\x1b[K")[-1], "`gleaner run` removes the line at the end"


def test_standard_output_has_no_progress(tmp_path: Path) -> None:
    require_build()
    command = [str(GLEANER), "run", "--workers", "1", "--", sys.executable, str(PROGRAMS / "pacing.py"), "20"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=60)
    assert done.returncode == 0, done.stderr
    assert all(line.startswith("[worker 0] ") for line in done.stdout.splitlines())
    assert "\x1b" not in done.stderr
