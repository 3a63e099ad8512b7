r"""Runs the checks of a program of this folder on one rank of a job, and records each result at once.

    PYTHONPATH=comm-lib/python:tests/python/programs gleaner run --workers 2 -- \
        python3 tests/gpu/programs/tensors.py --device cuda --results FOLDER [--checks NAME,NAME]

A check is a function check_NAME() of the program. It returns None or a note, raises Skip if this machine cannot run it,
and fails with any other exception. Each rank appends lines of JSON to FOLDER/rank-R.jsonl: one when a check begins, one
when it ends. After each check the ranks sum, in host memory, whether it has failed; a session that cannot do that is
broken, and the rank ends. A check that takes longer than --limit seconds ends the process, with a traceback of all
threads; the caller then starts a new job for the checks that did not begin.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import sys
import traceback
from pathlib import Path
from typing import Any, Callable, Optional

import gleaner.torch as gln
import torch

BROKEN = 3  # exit status: the session is broken


class Skip(Exception):
    """The check cannot run here; the message says why."""


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--results", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--checks", default="", metavar="NAME,NAME", help="default: all checks of the program")
    parser.add_argument("--limit", type=float, default=30, metavar="SECONDS", help="of each check")
    return parser.parse_args()


ARGUMENTS = parse_arguments()


def device_of(local_rank: int) -> torch.device:
    """Returns the device of a local rank. Local ranks share GPUs if there are fewer GPUs than local ranks."""
    if ARGUMENTS.device == "cpu":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise SystemExit("--device cuda needs a GPU, and PyTorch finds none")
    return torch.device("cuda", local_rank % torch.cuda.device_count())


def needs_cuda() -> None:
    if ARGUMENTS.device != "cuda":
        raise Skip("needs a GPU")


def synchronize() -> None:
    """Waits for the GPU, where there is one."""
    if ARGUMENTS.device == "cuda":
        torch.cuda.synchronize()


def sum_of(parts: list[torch.Tensor], divide_by: int = 1) -> torch.Tensor:
    """Sums the tensors of all ranks as Gleaner does: each worker's local ranks, then the workers, in their order."""
    kind = parts[0].dtype
    wide = kind if kind in (torch.float64, torch.int32) else torch.float32
    local = gln.local_size()
    workers = [total(parts[first : first + local], wide) for first in range(0, len(parts), local)]
    summed = total(workers, wide)
    return (summed if divide_by == 1 else summed / divide_by).to(kind)


def total(parts: list[torch.Tensor], kind: torch.dtype) -> torch.Tensor:
    summed = parts[0].to(kind)
    for part in parts[1:]:
        summed = summed + part.to(kind)
    return summed


class Results:
    def __init__(self, folder: Path, rank: int) -> None:
        self._file = (folder / f"rank-{rank}.jsonl").open("a")

    def write(self, check: str, event: str, note: str = "") -> None:
        self._file.write(json.dumps({"check": check, "event": event, "note": note}) + "\n")
        self._file.flush()


def run(functions: dict[str, Any], is_without_gpu: bool = False) -> None:
    """Runs the checks that --checks names, in the order of the program."""
    wanted = set(filter(None, ARGUMENTS.checks.split(",")))
    checks = {name[len("check_") :]: function for name, function in functions.items() if name.startswith("check_")}
    unknown = wanted - set(checks)
    if unknown:
        raise SystemExit(f"no such check: {', '.join(sorted(unknown))}")
    gln.init()
    results = Results(ARGUMENTS.results, gln.rank())
    if ARGUMENTS.device == "cuda" and not is_without_gpu:
        torch.cuda.set_device(device_of(gln.local_rank()))
        torch.zeros(1, device="cuda")
    for name, check in checks.items():
        if not wanted or name in wanted:
            run_one(results, name, check)
    gln.shutdown()


def run_one(results: Results, name: str, check: Callable[[], Optional[str]]) -> None:
    results.write(name, "began")
    faulthandler.dump_traceback_later(ARGUMENTS.limit, exit=True)
    event, note = "passed", ""
    try:
        note = check() or ""
    except Skip as reason:
        event, note = "skipped", str(reason)
    except Exception:
        event, note = "failed", traceback.format_exc()
        print(f"{name} failed\n{note}", file=sys.stderr, flush=True)
    results.write(name, event, note)
    try:
        gln.push_pull(torch.tensor([float(event == "failed")]), average=False, name=f"verdict of {name}")
    except Exception:
        print(f"the session is broken after {name}\n{traceback.format_exc()}", file=sys.stderr, flush=True)
        raise SystemExit(BROKEN) from None
    finally:
        faulthandler.cancel_dump_traceback_later()
