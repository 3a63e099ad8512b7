"""Sums random tensors that are large enough for summers, and prints digests of the sums.

usage: distributed_summers.py [STOP]

Without STOP it makes five sums. With STOP, the path of a file, it goes on until that file exists. Rank 0 prints "sums
SHA-256" of the first five, "summing" after them, "transports T" with the summers that it reaches, and "ended".
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import gleaner.torch.distributed  # noqa: F401
import torch
import torch.distributed as dist
from gleaner import process

ELEMENTS = 1 << 19
STEPS = 5

stop = Path(sys.argv[1]) if len(sys.argv) > 1 else None
dist.init_process_group("gleaner")
rank, size = dist.get_rank(), dist.get_world_size()
digest = hashlib.sha256()
step, is_over = 0, False
while not is_over:
    parts = [torch.randn(ELEMENTS, generator=torch.Generator().manual_seed(step * size + each)) for each in range(size)]
    own = parts[rank].clone()
    dist.all_reduce(own)
    expected = sum(parts[1:], parts[0].clone())
    assert torch.equal(own, expected), f"rank {rank}: the sum of step {step} is wrong"
    step += 1
    if step <= STEPS:
        digest.update(own.numpy().tobytes())
    if step == STEPS and rank == 0:
        print(f"sums {digest.hexdigest()}\ntransports {process.current().transports()}\nsumming", flush=True)
    stopping = torch.tensor(float(step >= STEPS and (stop is None or stop.exists())))
    dist.all_reduce(stopping, dist.ReduceOp.MAX)
    is_over = bool(stopping)
dist.destroy_process_group()
if rank == 0:
    print("ended", flush=True)
