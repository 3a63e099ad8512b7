"""Tests that `gleaner run` shows the job's progress on a terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from conftest import GLEANER, PROGRAMS, TIMEOUT, environment, patient, read_until, require_build


def on_a_terminal(stop: Path, *flags: str, until: str) -> str:
    """Runs a job on a terminal until it has shown `until`. Returns the output of `gleaner run`."""
    require_build()
    ours, theirs = pty.openpty()
    command = [
        str(GLEANER),
        "run",
        "--workers",
        "2",
        *patient(flags),
        "--",
        sys.executable,
        str(PROGRAMS / "pacing.py"),
    ]
    job = subprocess.Popen(
        [*command, str(stop)], stdout=theirs, stderr=theirs, env=environment(), start_new_session=True
    )
    os.close(theirs)
    text, end = b"", time.monotonic() + TIMEOUT
    try:
        while select.select([ours], [], [], end - time.monotonic())[0]:
            try:
                text += os.read(ours, 65536)
            except OSError:  # the last writer has closed the terminal
                break
            if until in text.decode(errors="replace"):
                stop.touch()
        assert job.wait(TIMEOUT) == 0, text
    finally:
        os.close(ours)
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
    return text.decode()


def shown(text: str) -> list[str]:
    """Returns the lines of progress in the output."""
    return [piece for piece in text.split("\r\x1b[K") if piece.startswith("gleaner: step ")]


def test_a_terminal_shows_a_line_of_progress(tmp_path: Path) -> None:
    text = on_a_terminal(tmp_path / "stop", until="goodput")
    assert "goodput" in shown(text)[-1], text
    assert "gleaner: step" not in text.split("\r\x1b[K")[-1], "`gleaner run` removes the line at the end"


def test_no_progress_is_shown_on_request(tmp_path: Path) -> None:
    """The job makes more steps than it needs to show its progress."""
    text = on_a_terminal(tmp_path / "stop", "--no-progress", until="step 30")
    assert shown(text) == [], text


def test_standard_output_has_no_progress(tmp_path: Path) -> None:
    require_build()
    stop = tmp_path / "stop"
    command = [str(GLEANER), "run", "--workers", "1", *patient(()), "--", sys.executable, str(PROGRAMS / "pacing.py")]
    job = subprocess.Popen(
        [*command, str(stop)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    )
    try:
        first = read_until(job, "step 20")
        stop.touch()
        out, err = job.communicate(timeout=TIMEOUT)
    finally:
        job.kill()
    assert job.returncode == 0, err
    assert all(line.startswith("[worker 0] ") for line in [first, *out.splitlines()])
    assert "\x1b" not in err
