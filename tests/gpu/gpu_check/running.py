"""Runs commands with a time limit. No process that a command started outlives it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

GRACE = 8  # seconds from SIGTERM to SIGKILL; `gleaner run` ends its own processes within them
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Outcome:
    status: int  # negative: the number of the signal that ended the command
    output: str  # standard output and standard error
    seconds: float
    timed_out: bool

    @property
    def is_good(self) -> bool:
        return self.status == 0 and not self.timed_out

    def tail(self, lines: int = 15) -> str:
        return "\n".join(self.output.strip().splitlines()[-lines:])

    def reason(self, limit: float) -> str:
        """Returns why the command is not good, with the end of its output."""
        if self.timed_out:
            return f"did not end within {limit:.0f} s\n{self.tail()}"
        return f"ended with status {self.status}\n{self.tail()}"


def adopt_orphans() -> None:
    """Makes this process the parent of orphans among its descendants, so that run() finds and ends them."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def run(command: list[str], limit: float, log: Path, environment: Mapping[str, str] | None = None) -> Outcome:
    """Runs a command for at most `limit` seconds. Its output goes to `log`: an orphan could keep a pipe open."""
    began = time.monotonic()
    timed_out = False
    with log.open("wb") as output:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=None if environment is None else dict(environment),
                start_new_session=True,
            )
        except OSError as error:
            return Outcome(127, f"cannot run {command[0]}: {error}", 0.0, False)
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired:
            timed_out = True
            end(process)
        except BaseException:
            end(process)
            raise
        finally:
            end_descendants()
    text = log.read_bytes().decode(errors="replace")
    return Outcome(process.returncode, text, time.monotonic() - began, timed_out)


def end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)
    process.kill()
    process.wait()


def children(process: int) -> Iterator[int]:
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            yield from map(int, (task / "children").read_text().split())


def end_descendants() -> None:
    """Kills all descendants of this process, until none is left. adopt_orphans() has made them its own."""
    for _ in range(100):
        left = list(children(os.getpid()))
        if not left:
            return
        for child in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, 0)
