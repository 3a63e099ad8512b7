"""The steps of tests/gpu/check. Each one returns what it adds to the record; an exception is a failed step."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from gpu_check import facts, jobs, layout, running

AIM = 0.95  # of the rate of cudaMemcpyAsync, from 4 MiB on


@dataclass
class Context:
    """Options of a run. `limit`: seconds of the step that runs now. `patience` multiplies all limits."""

    device: str
    libcuda: str
    folder: Path
    patience: float
    limit: float = 0
    is_quick: bool = False

    def run(self, name: str, command: list[str], **more: str) -> running.Outcome:
        log = self.folder / f"{name}.log"
        return running.run(command, self.limit, log, {**jobs.environment(), **more})


@dataclass(frozen=True)
class Step:
    """`run` returns an entry with `verdict` (passed, failed or skipped) and `note`, and results under other keys."""

    name: str
    limit: float  # seconds
    run: Callable[[Context], dict[str, Any]]


class Failed(Exception):
    """The message says why a step failed."""


def good(outcome: running.Outcome, context: Context) -> running.Outcome:
    if not outcome.is_good:
        raise Failed(outcome.reason(context.limit))
    return outcome


def library(context: Context) -> dict[str, Any]:
    """Opens libgleaner.so in this Python, alone and then beside PyTorch and OpenSSL."""
    alone = context.run("library", [sys.executable, "-c", f"import ctypes; ctypes.CDLL({str(layout.LIBRARY)!r})"])
    if "GLIBC" in alone.output and layout.MANIFEST.exists():
        needs = layout.manifest()["needs"]
        raise Failed(
            f"libgleaner.so needs {needs['GLIBC']} and {needs['GLIBCXX']}, which this machine's C and C++ libraries do "
            f"not have ({os.confstr('CS_GNU_LIBC_VERSION')}): use a newer distribution, or build Gleaner on this one. "
            f"Programs of the bundle use its own C library.\n{alone.tail(3)}"
        )
    good(alone, context)
    code = "import torch, ssl, gleaner.torch, gleaner._abi as abi; print(abi.load_library().gln_version().decode())"
    version = good(context.run("library", [sys.executable, "-c", code]), context).output.strip().splitlines()[-1]
    return {"verdict": "passed", "note": f"version {version}"}


def of_tests(name: str, program: str) -> Callable[[Context], dict[str, Any]]:
    """Returns a step that runs a test program over this machine's driver."""

    def run(context: Context) -> dict[str, Any]:
        command = [*layout.native(program), "--gtest_color=no"]
        outcome = context.run(name, command, GLEANER_TEST_LIBCUDA=context.libcuda)
        began, passed = tests_of(outcome.output)
        if not outcome.is_good:
            failed = ", ".join(name for name in began if name not in passed)
            raise Failed(f"{len(passed)} tests passed, and these did not: {failed}\n{outcome.reason(context.limit)}")
        skipped = len(began) - len(passed)
        note = f"{len(passed)} tests" + (f", {skipped} skipped: a build without nvcc has no kernels" if skipped else "")
        return {"verdict": "passed", "note": note, "tests": len(passed)}

    return run


def tests_of(output: str) -> tuple[list[str], list[str]]:
    """Returns the tests that a program of GoogleTest began, and those that passed. A crash ends the last one."""
    began = re.findall(r"^\[ RUN      \] (\S+)", output, re.MULTILINE)
    return began, re.findall(r"^\[       OK \] (\S+)", output, re.MULTILINE)


def copies(context: Context) -> dict[str, Any]:
    command = [*layout.native("gpu_copies"), "--libcuda", context.libcuda]
    runtime = facts.find_cuda_runtime() if context.libcuda == "libcuda.so.1" else ""
    if context.is_quick:
        command += ["--rounds", "1", "--round-bytes", str(8 << 20), "--largest", str(4 << 20)]
    outcome = context.run("copies", [*command, "--libcudart", runtime] if runtime else command)
    if runtime and not outcome.is_good:  # the runtime may be newer than the driver
        outcome = context.run("copies-driver", command)
    good(outcome, context)
    rows = json.loads(outcome.output[outcome.output.index("{") :])["rows"]
    large = [row for row in rows if row["bytes"] >= 4 << 20 and row["copies"] > 1]
    best = best_ratios(large)
    low = [f"{ratio:.3f} {direction} at {size >> 20} MiB" for (direction, size), ratio in best.items() if ratio < AIM]
    if context.is_quick:
        return {"verdict": "passed", "note": "over the double of libcuda, so the rates mean nothing", "rows": rows}
    note = f"least ratio from 4 MiB on: {min(best.values()):.3f} (aim {AIM})"
    return {"verdict": "passed", "note": "; ".join([note, *low]), "rows": rows}


def best_ratios(rows: list[dict[str, Any]]) -> dict[tuple[str, int], float]:
    """Returns for each direction and size the rate of the better number of streams, beside that of CUDA."""
    best: dict[tuple[str, int], float] = {}
    for row in rows:
        key = (row["direction"], row["bytes"])
        best[key] = max(best.get(key, 0.0), ratio_of(row))
    return best


def ratio_of(row: dict[str, Any]) -> float:
    rates = row["bytes_per_second"]
    return rates["gleaner"] / max(rates["driver"], rates.get("runtime", 0.0))


def of_job(job: jobs.Job) -> Callable[[Context], dict[str, Any]]:
    def run(context: Context) -> dict[str, Any]:
        checks = jobs.run(job, context.device, context.folder, context.limit, context.patience)
        counts = {verdict: sum(check["verdict"] == verdict for check in checks) for verdict in VERDICTS}
        bad = counts["failed"] + counts["not run"]
        note = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
        return {"verdict": "failed" if bad else "passed", "note": note, "checks": checks}

    return run


COLLECTIVES_LIMIT = 40  # seconds of one job
VERDICTS = ("passed", "failed", "skipped", "not run")


def collectives(context: Context) -> dict[str, Any]:
    """Runs push_pull, Gloo and NCCL with two processes. Most versions of NCCL refuse two processes on one GPU."""
    rows = contend(context, "gleaner,gloo", 2, summers=2)
    if context.device == "cuda":
        rows += contend(context, "nccl", 2, summers=0)
    failed = [row for row in rows if "error" in row and row["contender"] != "nccl"]
    note = "; ".join(f"{row['contender']} with {row['ranks']} ranks: {row['error']}" for row in rows if "error" in row)
    return {"verdict": "failed" if failed else "passed", "note": note, "rows": rows}


def contend(context: Context, contenders: str, workers: int, summers: int) -> list[dict[str, Any]]:
    name = f"collectives-{contenders.replace(',', '-')}-{workers}"
    results = context.folder / name
    results.mkdir()
    job = jobs.Job(name, "collectives.py", workers=workers, summers=summers)
    command = [str(layout.PROGRAMS / job.program), "--device", context.device, "--contenders", contenders]
    context.limit = min(context.limit, COLLECTIVES_LIMIT * context.patience)
    outcome = context.run(name, jobs.gleaner_run(job, [*command, "--results", str(results)]))
    written = results / "collectives.json"
    rows = json.loads(written.read_text())["rows"] if written.exists() else []
    if not outcome.is_good:
        rows.append({"contender": contenders, "error": outcome.reason(context.limit)})
    for row in rows:
        if "error" in row:  # what NCCL says at its end is the cause
            row["error"] = row["error"].rpartition("Last error: ")[2]
    return [{**row, "ranks": workers} for row in rows]


def digits(context: Context) -> dict[str, Any]:
    """Trains the digits on the device, with Gleaner and in one process, and with Gleaner on CPUs."""
    if not context.run("sklearn", [sys.executable, "-c", "import sklearn"]).is_good:
        return {"verdict": "skipped", "note": "this Python has no scikit-learn"}
    train = [str(layout.ROOT / "examples" / "digits" / "train.py"), "--epochs", "2"]
    job = jobs.Job("digits", "")
    runs = {
        "gleaner": jobs.gleaner_run(job, [*train, "--device", context.device]),
        "one process": [sys.executable, *train, "--device", context.device, "--reference", str(job.ranks)],
        "gleaner on CPUs": jobs.gleaner_run(job, [*train, "--device", "cpu"]),
    }
    results = {}
    for name, command in runs.items():
        file = context.folder / f"digits-{name.replace(' ', '-')}.json"
        good(context.run(f"digits-{name.replace(' ', '-')}", [*command, "--result", str(file)]), context)
        whole = json.loads(file.read_text())
        results[name] = {key: whole[key] for key in ("accuracy", "sha256", "seconds", "transports")}
    if results["gleaner"]["sha256"] != results["one process"]["sha256"]:
        raise Failed(f"the job and the training in one process differ: {results}")
    difference = abs(results["gleaner"]["accuracy"] - results["gleaner on CPUs"]["accuracy"])
    if difference > 0.03:
        raise Failed(f"accuracy on {context.device} and on CPUs differ by {difference:.2%}: {results}")
    note = f"the bits of one process; accuracy {results['gleaner']['accuracy']:.2%}, on CPUs "
    return {"verdict": "passed", "note": note + f"{results['gleaner on CPUs']['accuracy']:.2%}", "runs": results}


STEPS = [
    Step("library", 60, library),
    Step("conformance", 60, of_tests("conformance", "device_conformance_test")),
    Step("kernels", 60, of_tests("kernels", "device_kernels_conformance_test")),
    Step("copies", 60, copies),
    Step("tensors", 90, of_job(jobs.Job("tensors", "tensors.py"))),
    Step("streams", 60, of_job(jobs.Job("streams", "streams.py"))),
    Step("training", 90, of_job(jobs.Job("training", "training.py"))),
    Step("torch.distributed", 60, of_job(jobs.Job("distributed", "distributed.py"))),
    Step("collectives", 90, collectives),
    Step("tensors, 2 x 2 local ranks", 60, of_job(jobs.Job("tensors-local", "tensors.py", local_ranks=2))),
    Step("training, 2 x 2 local ranks", 60, of_job(jobs.Job("training-local", "training.py", local_ranks=2))),
    Step("digits", 90, digits),
    Step("mixed", 40, of_job(jobs.Job("mixed", "mixed.py"))),
    Step("bad input", 60, of_job(jobs.Job("bad-input", "bad_input.py"))),
    Step("compiled", 90, of_job(jobs.Job("compiled", "compiled.py", check_limit=60))),
]


def find(names: Optional[str]) -> list[Step]:
    """Returns the steps whose names match a regular expression."""
    return [step for step in STEPS if not names or re.search(names, step.name)]
