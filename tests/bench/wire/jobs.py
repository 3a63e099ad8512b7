"""Steps of ours: a job of `gleaner bench push-pull` in a lab, and the bound of its plan."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Optional

from wire.lab import ROOT, Lab
from wire.steps import Steps

BUILD = Path(os.environ.get("GLEANER_BUILD", ROOT / "build" / "release"))
GLEANER = str(BUILD / "bin" / "gleaner")


def links(lab: Lab) -> list[str]:
    def listed(kind: str, count: int) -> str:
        return ",".join(f"{lab.payload_of(f'{kind}{i}') / 1e6:.3f}Mbit" for i in range(count))

    flags = ["--workers", str(lab.workers), "--summers", str(lab.summers)]
    flags += ["--worker-bandwidths", listed("worker", lab.workers)]
    if lab.summers:
        flags += ["--summer-bandwidths", listed("summer", lab.summers)]
    return flags


def bound(lab: Lab, tensors: list[str]) -> float:
    """Seconds that a step takes at best, by the model for these links."""
    command = [GLEANER, "plan", *links(lab), *tensors, "-o", "json"]
    planned = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return float(json.loads(planned)["bound_seconds"])


def run(
    lab: Lab, command: list[str], local_ranks: int = 1, environment: Optional[dict[str, str]] = None
) -> list[dict[str, Any]]:
    """A job of `command` on the lab's hosts; the objects that its ranks wrote."""
    launch = [GLEANER, "run", *links(lab), "--local-ranks", str(local_ranks), "--hosts", str(lab.hosts_file)]
    launch += ["--no-prefix", "--", *command]
    done = subprocess.run(launch, capture_output=True, text=True, env={**os.environ, **(environment or {})})
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(launch)} ended with {done.returncode}: {done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def measure(lab: Lab, tensors: list[str], steps: int, warmup: int = 2, local_ranks: int = 1) -> Steps:
    """`tensors`: --bytes N or --tensors FILE."""
    command = [GLEANER, "bench", "push-pull", *tensors, "--json", "--steps", str(steps), "--warmup", str(warmup)]
    lines = run(lab, command, local_ranks)
    if len({line["sha256"] for line in lines}) != 1 or len(lines) != lab.workers:
        raise RuntimeError(f"the workers' sums differ: {[line['sha256'] for line in lines]}")
    return Steps.of_ranks(lines)
