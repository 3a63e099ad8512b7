"""Who trains the trace: jobs of ours and of torch's Gloo on the workers of a lab."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wire import jobs
from wire.lab import ROOT, Part
from wire.steps import Steps

PYTHON = "/usr/bin/python3"  # Debian's, which has torch
WORKER = ROOT / "tests" / "bench" / "training" / "worker.py"

Contender = Callable[[Part, list[str]], Steps]  # takes the worker's flags

OF_OURS = {
    "PYTHONPATH": str(ROOT / "comm-lib" / "python"),
    "GLEANER_LIBRARY": str(jobs.BUILD / "lib" / "libgleaner.so"),
}


def ours(name: str) -> Contender:
    """`cross` waits for parameters layer by layer, `barrier` for all in step(); `cross-unordered` has no priorities."""

    def train(part: Part, flags: list[str]) -> Steps:
        return steps_of(jobs.run(part, [PYTHON, str(WORKER), name, *flags], environment=OF_OURS), part.n)

    return train


def gloos(name: str, *more: str) -> Contender:
    """`ddp`, or one all-reduce `after` backward."""

    def train(part: Part, flags: list[str]) -> Steps:
        prefixes = [[*part.lab.prefix(host), "env", "GLOO_SOCKET_IFNAME=eth0"] for host in part.workers]
        return steps_of(together(prefixes, [name, *more, *flags]), part.n)

    return train


def together(prefixes: list[list[str]], flags: list[str]) -> list[dict[str, Any]]:
    """A worker behind each prefix, and they meet over Gloo; the objects that they wrote."""
    with tempfile.TemporaryDirectory(prefix="gleaner-training-") as folder:
        command = [PYTHON, str(WORKER), *flags, "--meeting", f"{folder}/meeting", "--ranks", str(len(prefixes))]
        ranks = [
            subprocess.Popen(
                [*prefix, *command, "--rank", str(rank)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            for rank, prefix in enumerate(prefixes)
        ]
        try:
            ended = [rank.communicate() for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
                rank.wait()
    for rank, (_, err) in zip(ranks, ended):
        if rank.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} ended with {rank.returncode}: {err[-2000:]}")
    return [json.loads(out) for out, _ in ended]


def steps_of(lines: list[dict[str, Any]], workers: int) -> Steps:
    if len(lines) != workers:
        raise RuntimeError(f"{len(lines)} of {workers} workers told their steps")
    return Steps.of_ranks(lines)


def tensors_of(trace: Path, folder: Path) -> list[str]:
    """A trace's tensors as `gleaner plan` takes them."""
    layers = json.loads(trace.read_text())["layers"]
    listed = [{"name": name, "bytes": size} for layer in reversed(layers) for name, size in layer["tensors"]]
    path = folder / "tensors.json"
    path.write_text(json.dumps(listed))
    return ["--tensors", str(path)]
