"""Runs the ranks of a job at the same time. Each rank writes its measurements as one line of JSON."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from wire.steps import Steps


def together(commands: list[list[str]], timeout: float) -> list[dict[str, Any]]:
    """Runs all commands at once. Returns the output of each command that wrote any.

    If one command fails, ends all of them. No process is left when this returns.
    """
    with tempfile.TemporaryDirectory(prefix="gleaner-ranks-") as folder:
        # Outputs go to files, because a full pipe would block a rank, and other ranks would wait for that rank.
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
    """Waits until all ranks have ended or one has failed. Returns the index of the failed one, or None."""
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
    """Checks and combines the lines of all ranks. `ranks` is the expected number of lines.

    Some programs write a digest of their sums, which must be the same on all ranks. Others write whether their sums are
    `right`.
    """
    if len(lines) != ranks:
        raise RuntimeError(f"{len(lines)} of {ranks} ranks reported their steps")
    digests = [line.get("sha256") for line in lines]
    if len(set(digests)) != 1:
        raise RuntimeError(f"the ranks' sums differ: {digests}")
    wrong = [line for line in lines if not line.get("right", True)]
    if wrong:
        raise RuntimeError(f"wrong sums: {wrong[0]}")
    return Steps.of_ranks(lines)
