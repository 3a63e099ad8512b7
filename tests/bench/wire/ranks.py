"""Ranks of a job: programs that run at the same time, each of which writes what it measured as one line of JSON."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from wire.steps import Steps


def together(commands: list[list[str]], timeout: float) -> list[dict[str, Any]]:
    """What each wrote, if it wrote anything. One that fails ends all, and none is left."""
    with tempfile.TemporaryDirectory(prefix="gleaner-ranks-") as folder:
        # Files: a pipe that nobody reads yet would hold up its rank, and those that wait for it.
        files = [(Path(folder) / f"{rank}.out", Path(folder) / f"{rank}.err") for rank in range(len(commands))]
        ranks: list[subprocess.Popen[bytes]] = []
        try:
            for command, (out, err) in zip(commands, files):
                with out.open("w") as to_out, err.open("w") as to_err:
                    ranks.append(subprocess.Popen(command, stdout=to_out, stderr=to_err))
            failed = wait_for(ranks, timeout)
        finally:
            for process in ranks:
                process.kill()
                process.wait()
        if failed is not None:
            code, said = ranks[failed].returncode, files[failed][1].read_text()
            raise RuntimeError(f"{' '.join(commands[failed])} ended with {code}: {said[-2000:]}")
        return [json.loads(line) for line in (out.read_text() for out, _ in files) if line]


def wait_for(ranks: list[subprocess.Popen[bytes]], timeout: float) -> int | None:
    """Until all have ended, or one has failed: that one."""
    deadline = time.monotonic() + timeout
    while True:
        codes = [rank.poll() for rank in ranks]
        failed = [rank for rank, code in enumerate(codes) if code]
        if failed:
            return failed[0]
        if None not in codes:
            return None
        if time.monotonic() > deadline:
            raise subprocess.TimeoutExpired(ranks[codes.index(None)].args, timeout)
        time.sleep(0.05)


def steps_of(lines: list[dict[str, Any]], ranks: int) -> Steps:
    """Of what so many ranks wrote. Some add a digest of their sums, which are everybody's; others whether they are
    `right`."""
    if len(lines) != ranks:
        raise RuntimeError(f"{len(lines)} of {ranks} ranks told their steps")
    digests = [line.get("sha256") for line in lines]
    if len(set(digests)) != 1:
        raise RuntimeError(f"the ranks' sums differ: {digests}")
    wrong = [line for line in lines if not line.get("right", True)]
    if wrong:
        raise RuntimeError(f"wrong sums: {wrong[0]}")
    return Steps.of_ranks(lines)
