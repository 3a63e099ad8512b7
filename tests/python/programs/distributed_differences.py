"""The two ranks of a job make different calls; both print the error.

usage: distributed_differences.py DIFFERENCE
"""

from __future__ import annotations

import datetime
import sys
from typing import Any

import gleaner.torch.distributed as backend
import torch
import torch.distributed as dist
from gleaner.torch import Compression

dist.init_process_group("gleaner", timeout=datetime.timedelta(seconds=30))
IS_FIRST = dist.get_rank() == 0
TYPE = torch.float32 if IS_FIRST else torch.int32
OP = dist.ReduceOp.SUM if IS_FIRST else dist.ReduceOp.MAX


def gather_or_reduce() -> None:
    if IS_FIRST:
        dist.all_gather([torch.empty(4) for _ in range(2)], torch.ones(4))
    else:
        dist.all_reduce(torch.ones(4))


# Sums a tensor `before` times as it is. Then rank 0 sets the compressor `first`, and rank 1 `second`, or None: none.
def compressed_sums(first: Any, second: Any, before: int = 0) -> None:
    for _ in range(before):
        dist.all_reduce(torch.ones(300_000))
    if IS_FIRST or second is not None:
        backend.set_compression(first if IS_FIRST else second)
    dist.all_reduce(torch.ones(300_000))


RANDOM = [Compression.random_k(seed=seed, error_feedback=False) for seed in range(2)]
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
    "seed": lambda: compressed_sums(*RANDOM),
    "later_compression": lambda: compressed_sums(Compression.none, Compression.bf16, before=2),
    "compression_of_one_rank": lambda: compressed_sums(Compression.fp16, None),
}

try:
    DIFFERENCES[sys.argv[1]]()
    print("no error", flush=True)
except RuntimeError as error:
    print(f"error: {error}", flush=True)
