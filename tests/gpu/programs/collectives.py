"""Times push_pull beside all_reduce of torch.distributed, on the same tensors in the same processes.

    gleaner run --workers 2 -- python3 collectives.py --contenders gleaner,gloo --results FOLDER

Rank 0 writes FOLDER/collectives.json: a row for each contender and case, with the median of the steps in seconds. The
time of a step is that of the slowest rank. Contenders take turns. A contender that cannot run gets a row with the
reason.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any, Callable

import gleaner.torch as gln
import torch
import torch.distributed

MIB = 1 << 20
CASES = {"1 MiB": [MIB], "4 MiB": [4 * MIB], "16 MiB": [16 * MIB], "64 MiB": [64 * MIB], "25 x 4 MiB": [4 * MIB] * 25}
STEPS = 12
SECONDS = 3  # for the steps of one case
WARM = 3


class Gleaner:
    def __call__(self, name: str, tensors: list[torch.Tensor]) -> None:
        handles = [
            gln.push_pull_async_inplace(tensor, name=f"{name}.{i}", priority=i) for i, tensor in enumerate(tensors)
        ]
        for handle in handles:
            gln.synchronize(handle)


class AllReduce:
    def __init__(self, backend: str, meeting: Path) -> None:
        torch.distributed.init_process_group(
            backend, init_method=f"file://{meeting.resolve()}", rank=gln.rank(), world_size=gln.size()
        )

    def __call__(self, name: str, tensors: list[torch.Tensor]) -> None:
        for work in [torch.distributed.all_reduce(tensor, async_op=True) for tensor in tensors]:
            work.wait()


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def step_seconds(call: Callable[[], None], device: torch.device, name: str) -> float:
    gln.push_pull(torch.zeros(1), name="ready")  # all ranks begin together
    began = time.monotonic()
    call()
    synchronize(device)
    took = torch.zeros(gln.size(), dtype=torch.float64)
    took[gln.rank()] = time.monotonic() - began
    return float(gln.push_pull(took, average=False, name=f"took {name}").max())


def measure(contender: Any, name: str, case: str, device: torch.device) -> dict[str, Any]:
    tensors = [torch.ones(size // 4, device=device) for size in CASES[case]]
    synchronize(device)
    for _ in range(WARM):
        contender(f"{name}.{case}", tensors)
    taken: list[float] = []
    while len(taken) < STEPS and sum(taken) < SECONDS:
        for tensor in tensors:
            tensor.fill_(1.0)
        synchronize(device)
        taken.append(step_seconds(lambda: contender(f"{name}.{case}", tensors), device, name))
    # The sum of ones, or their average, tells whether the values are right.
    expected = 1.0 if name == "gleaner" else float(gln.size())
    assert all(bool((tensor == expected).all()) for tensor in tensors), f"{name} has wrong values"
    return {"contender": name, "case": case, "seconds": statistics.median(taken), "steps": len(taken)}


def open_contender(name: str, folder: Path, device: torch.device) -> Any:
    if name == "gleaner":
        return Gleaner()
    contender = AllReduce(name, folder / f"meeting-{name}")
    contender("first", [torch.ones(10, device=device)])  # NCCL reports two ranks on one GPU here
    synchronize(device)
    return contender


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--contenders", default="gleaner,gloo")
    parser.add_argument("--results", type=Path, required=True)
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    gln.init()
    device = torch.device("cpu")
    if arguments.device == "cuda":
        if not torch.cuda.is_available():
            raise SystemExit("--device cuda needs a GPU, and PyTorch finds none")
        device = torch.device("cuda", gln.local_rank() % torch.cuda.device_count())
        torch.cuda.set_device(device)
    rows: list[dict[str, Any]] = []
    for name in arguments.contenders.split(","):
        try:
            contender = open_contender(name, arguments.results, device)
            for case in CASES:
                rows.append(measure(contender, name, case, device))
                write(arguments.results, rows)
        except Exception as error:
            text = " ".join(str(error).split())
            rows.append({"contender": name, "error": f"{type(error).__name__}: {text[:400]}"})
        write(arguments.results, rows)
    gln.shutdown()
    sys.stdout.flush()
    os._exit(0)  # a process group that failed may wait for its peers when Python ends


def write(folder: Path, rows: list[dict[str, Any]]) -> None:
    if gln.rank() == 0:
        (folder / "collectives.json").write_text(json.dumps({"ranks": gln.size(), "rows": rows}))


if __name__ == "__main__":
    main()
