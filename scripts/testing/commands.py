"""Runs commands with their output in a log, and shows their progress.

Every command runs in a session of its own, which ends with this process: `end_all` kills what is left of it.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Optional

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "build" / "test-logs"
TOOLS = ROOT / "build" / "tools" / "bin"  # programs that scripts/bootstrap unpacks
PROGRESS_SECONDS = 15
EXCERPT_LINES = 60
# ninja prints [12/345], ctest 12/345, and pytest [ 12%].
COUNTER = re.compile(rb"^ *\[?(\d+/\d+)|\[ *(\d+%)\]$", re.MULTILINE)

_running: set[int] = set()


def _last_counter(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 4000))
        found = COUNTER.findall(file.read())
    return (found[-1][0] or found[-1][1]).decode() if found else ""


def run(log: Path, command: Sequence[str], variables: Optional[dict[str, str]] = None) -> int:
    """Runs a command in the project's folder, with its output in `log`. Returns its exit status.

    Prints the last counter of the output every 15 seconds, if the counter has changed.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            list(command),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PATH": f"{TOOLS}:{os.environ['PATH']}", **(variables or {})},
            start_new_session=True,
        )
    _running.add(process.pid)
    shown, next_line = "", time.monotonic() + PROGRESS_SECONDS
    while True:
        try:
            status = process.wait(timeout=max(0.0, next_line - time.monotonic()))
            break
        except subprocess.TimeoutExpired:
            next_line += PROGRESS_SECONDS
            counter = _last_counter(log)
            if counter not in ("", shown):
                print(f"  {counter}", flush=True)
                shown = counter
    _running.discard(process.pid)
    return status


def end_all() -> None:
    """Kills the sessions of the commands that are still running."""
    for leader in _running:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(leader, signal.SIGTERM)


def excerpt(log: Path) -> list[str]:
    """Returns the lines of a log that most likely show why the command failed."""
    lines = log.read_text(errors="replace").splitlines()
    shown: list[str] = []
    left = 0
    for line in lines:
        if re.match(r"FAILED: |CMake Error", line):
            left = 13
        if left > 0:
            shown.append(line)
            left -= 1
    return [line[:400] for line in (shown[:EXCERPT_LINES] or lines[-EXCERPT_LINES:])]
