"""The two ranks of a job make different calls; both print the error.

usage: distributed_differences.py DIFFERENCE
"""

from __future__ import annotations

import datetime
import sys

import gleaner.torch.distributed  # noqa: F401
import torch
import torch.distributed as dist

dist.init_process_group("gleaner", timeout=datetime.timedelta(seconds=30))
IS_FIRST = dist.get_rank() == 0
TYPE = torch.float32 if IS_FIRST else torch.int32
OP = dist.ReduceOp.SUM if IS_FIRST else dist.ReduceOp.MAX


def gather_or_reduce() -> None:
    if IS_FIRST:
        dist.all_gather([torch.empty(4) for _ in range(2)], torch.ones(4))
    else:
        dist.all_reduce(torch.ones(4))


DIFFERENCES = {
    "size": lambda: dist.all_reduce(torch.ones(4 if IS_FIRST else 5)),
    "size_of_plan": lambda: dist.all_reduce(torch.ones(300_000 if IS_FIRST else 400_000)),
    "type": lambda: dist.all_reduce(torch.ones(4, dtype=TYPE)),
    "type_in_parts": lambda: dist.all_reduce(torch.ones(100_000, dtype=TYPE)),
    "type_of_plan": lambda: dist.all_reduce(torch.ones(300_000, dtype=TYPE)),
    "reduction": lambda: dist.all_reduce(torch.ones(4), OP),
    "reduction_in_parts": lambda: dist.all_reduce(torch.ones(100_000), OP),
    "reduction_of_plan": lambda: dist.all_reduce(torch.ones(300_000), OP),
    "type_of_broadcast": lambda: dist.broadcast(torch.ones(4, dtype=TYPE), 0),
    "root": lambda: dist.broadcast(torch.ones(4), dist.get_rank()),
    "collective": gather_or_reduce,
}

try:
    DIFFERENCES[sys.argv[1]]()
    print("no error", flush=True)
except RuntimeError as error:
    print(f"error: {error}", flush=True)
