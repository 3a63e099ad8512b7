"""The contenders that train a trace on the workers of a lab: Gleaner, and PyTorch with Gloo."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wire import jobs, ranks
from wire.lab import ROOT, Part
from wire.steps import Steps
from wire.stolen import undisturbed

PYTHON = "/usr/bin/python3"  # Debian's, which has torch
WORKER = ROOT / "bench" / "training" / "worker.py"

Contender = Callable[[Part, list[str]], Steps]  # takes the worker's flags

OF_OURS = {
    "PYTHONPATH": str(ROOT / "comm-lib" / "python"),
    "GLEANER_LIBRARY": str(jobs.BUILD / "lib" / "libgleaner.so"),
}


def ours(name: str, *more: str) -> Contender:
    """Returns a contender that uses Gleaner.

    "cross" waits for parameters layer by layer, and "cross-unordered" does so without priorities. "barrier" waits for
    all parameters in step(). "ddp-gleaner" is PyTorch's DDP with backend gleaner."""

    @undisturbed
    def train(part: Part, flags: list[str]) -> Steps:
        return ranks.steps_of(lines_of(part, [name, *more, *flags]), part.n)

    return train


def lines_of(part: Part, flags: list[str]) -> list[dict[str, Any]]:
    """Runs a job of workers with Gleaner. Returns the objects that they wrote."""
    with tempfile.TemporaryDirectory(prefix="gleaner-training-") as folder:
        command = [PYTHON, str(WORKER), *flags, "--meeting", f"{folder}/meeting"]
        return jobs.run(part, command, environment=OF_OURS)


def gloos(name: str, *more: str) -> Contender:
    """Returns a contender that uses Gloo: "ddp", or one all-reduce "after" the backward pass."""

    @undisturbed
    def train(part: Part, flags: list[str]) -> Steps:
        prefixes = [[*part.lab.prefix(host), "env", "GLOO_SOCKET_IFNAME=eth0"] for host in part.workers]
        return ranks.steps_of(meet(prefixes, [name, *more, *flags]), part.n)

    return train


def meet(prefixes: list[list[str]], flags: list[str]) -> list[dict[str, Any]]:
    """Runs a worker behind each prefix, connected over Gloo. Returns the objects that the workers wrote."""
    with tempfile.TemporaryDirectory(prefix="gleaner-training-") as folder:
        command = [PYTHON, str(WORKER), *flags, "--meeting", f"{folder}/meeting", "--ranks", str(len(prefixes))]
        commands = [[*prefix, *command, "--rank", str(rank)] for rank, prefix in enumerate(prefixes)]
        return ranks.together(commands, jobs.TIMEOUT)


def tensors_of(trace: Path, folder: Path) -> list[str]:
    """Writes the tensors of a trace to a file. Returns the flag of `gleaner plan` that names the file."""
    layers = json.loads(trace.read_text())["layers"]
    listed = [{"name": name, "bytes": size} for layer in reversed(layers) for name, size in layer["tensors"]]
    path = folder / "tensors.json"
    path.write_text(json.dumps(listed))
    return ["--tensors", str(path)]
