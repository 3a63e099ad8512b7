"""Measures Gleaner's steps: runs `gleaner bench push-pull` as jobs on hosts, and computes the bounds of their plans."""

from __future__ import annotations

import json
import math
import os
import re
import statistics
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Optional

from wire import model, ranks, stolen
from wire.lab import ROOT, Part
from wire.steps import Steps

BUILD = Path(os.environ.get("GLEANER_BUILD", ROOT / "build" / "release"))
GLEANER = str(BUILD / "bin" / "gleaner")


@contextmanager
def programs_in(build: Path) -> Iterator[None]:
    """Makes this module run the programs of another build folder, inside the with-statement."""
    global GLEANER
    before, GLEANER = GLEANER, str(build / "bin" / "gleaner")
    try:
        yield
    finally:
        GLEANER = before


def links(part: Part) -> list[str]:
    """Returns the flags that describe the machines of a part: counts and, except on the loopback, bandwidths."""
    flags = ["--workers", str(part.n), "--summers", str(part.k)]
    if part.lab.setting.loopback:
        return flags
    for kind, hosts in (("worker", part.workers), ("summer", part.summers)):
        if hosts:
            rates = ",".join(f"{part.lab.payload_of(host) / 1e6:.3f}Mbit" for host in hosts)
            flags += [f"--{kind}-bandwidths", rates]
    return flags


def bound(part: Part, tensors: list[str], steps: Optional[Steps] = None) -> float:
    """Returns the least seconds of a step on these links, by the model.

    A link's shaper saves up tokens while the link is idle and then lets a burst through at once, which makes the bound
    shorter. The burst is computed from the pauses before `steps`, or is a full one if `steps` is None.
    """
    command = [GLEANER, "plan", *links(part), *tensors, "-o", "json"]
    planned = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    seconds = float(json.loads(planned)["bound_seconds"])
    if not part.lab.setting.is_shaped:
        return seconds
    workers, summers = ([part.lab.payload_of(host) for host in hosts] for hosts in (part.workers, part.summers))
    bucket, fastest = part.lab.bucket, max(workers + summers)
    pauses = steps.pauses if steps else [math.inf]
    saved = statistics.mean(min(bucket, fastest * pause) for pause in pauses)
    bytes_ = bytes_of(tensors)
    return seconds - model.bound(bytes_, workers, summers) + model.bound(bytes_, workers, summers, saved)


def lines_of(output: str) -> list[str]:
    """Returns each worker's line of JSON.

    `gleaner run` splits lines of more than 64 KiB into pieces, and prefixes each with the worker's name.
    """
    whole: dict[str, str] = defaultdict(str)
    for name, piece in re.findall(r"^\[(worker [0-9.]+)\] (.*)$", output, re.MULTILINE):
        whole[name] += piece
    return list(whole.values())


class Job:
    """A Gleaner job that runs `command` as each worker. The end of the with-statement ends the job in every case.

    `flags` are further flags of `gleaner run`."""

    def __init__(
        self,
        part: Part,
        command: list[str],
        local_ranks: int = 1,
        name: str = "bench",
        environment: Optional[dict[str, str]] = None,
        flags: Sequence[str] = (),
    ) -> None:
        self._command = [*part.lab.starter(), GLEANER, "run", *links(part), *flags]
        self._command += ["--local-ranks", str(local_ranks), "--job", name]
        if not part.lab.setting.loopback:
            self._command += ["--hosts", str(part.hosts_file())]
        self._command += ["--", *command]
        self._environment = {**os.environ, **(environment or {})}
        self._process: Optional[subprocess.Popen[str]] = None

    def __enter__(self) -> Job:
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self._environment
        )
        return self

    def __exit__(self, *_: object) -> None:
        if self._process and self._process.poll() is None:
            self._process.terminate()  # `gleaner run` ends the job's members, too
            self._process.communicate()

    def lines(self, timeout: float) -> list[dict[str, Any]]:
        """Waits for the job to end. Returns the JSON object that each worker wrote."""
        assert self._process is not None
        out, err = self._process.communicate(timeout=timeout)
        if self._process.returncode != 0:
            raise RuntimeError(f"{' '.join(self._command)} ended with {self._process.returncode}: {err[-2000:]}")
        return [json.loads(line) for line in lines_of(out)]


TIMEOUT = 1800.0  # seconds after which a single job counts as hanging


def run(
    part: Part,
    command: list[str],
    local_ranks: int = 1,
    environment: Optional[dict[str, str]] = None,
    flags: Sequence[str] = (),
) -> list[dict[str, Any]]:
    with Job(part, command, local_ranks, environment=environment, flags=flags) as job:
        return job.lines(TIMEOUT)


def bench(tensors: list[str], steps: int, warmup: int = 2) -> list[str]:
    """Returns the command of the benchmark. `tensors` is --bytes N or --tensors FILE."""
    return [GLEANER, "bench", "push-pull", *tensors, "--json", "--steps", str(steps), "--warmup", str(warmup)]


def one_run(
    part: Part, tensors: list[str], steps: int, warmup: int = 2, local_ranks: int = 1, flags: Sequence[str] = ()
) -> Steps:
    """Measures the steps of one job, even if other virtual machines disturb it."""
    return ranks.steps_of(run(part, bench(tensors, steps, warmup), local_ranks, flags=flags), part.n)


measure = stolen.undisturbed(one_run)


def write_list(folder: Path, count: int, bytes_: int) -> list[str]:
    """Writes a list of `count` tensors to a file. Returns the flag that names the file."""
    path = folder / f"tensors-{count}-{bytes_}.json"
    path.write_text(json.dumps([{"name": f"t{i}", "bytes": bytes_} for i in range(count)]))
    return ["--tensors", str(path)]


def of_model(name: str) -> list[str]:
    """Returns the flag that names the tensors of a real model."""
    return ["--tensors", str(ROOT / "examples" / "models" / f"{name}.json")]


def bytes_of(tensors: list[str]) -> int:
    """Returns the total bytes of --bytes N or --tensors FILE."""
    if tensors[0] == "--bytes":
        return int(tensors[1])
    return sum(entry["bytes"] for entry in json.loads(Path(tensors[1]).read_text()))
