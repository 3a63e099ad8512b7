"""Rank 1 dies while the other ranks are in a collective, which must end with an error that names it.

usage: distributed_lost.py COLLECTIVE
"""

from __future__ import annotations

import os
import signal
import sys
import time

import gleaner.torch.distributed  # noqa: F401
import torch
import torch.distributed as dist

SMALL, MIDDLE, LARGE = torch.ones(4), torch.ones(100_000), torch.ones(300_000)


def backward() -> None:
    MODEL(torch.ones(4, 300)).sum().backward()


COLLECTIVES = {
    "all_reduce": lambda: dist.all_reduce(SMALL),
    "large_all_reduce": lambda: dist.all_reduce(LARGE),
    "all_reduce_in_parts": lambda: dist.all_reduce(MIDDLE),
    "broadcast": lambda: dist.broadcast(LARGE, 1),
    "all_gather": lambda: dist.all_gather([torch.empty_like(LARGE) for _ in range(2)], LARGE),
    "reduce": lambda: dist.reduce(LARGE, 0),
    "recv": lambda: dist.recv(SMALL, 1),
    "recv_from_any": lambda: dist.recv(SMALL),
    "barrier": dist.barrier,
    "future": lambda: dist.all_reduce(SMALL, async_op=True).get_future().wait(),
    "backward": backward,
}

dist.init_process_group("gleaner")
MODEL = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(300, 300))
backward()
dist.barrier()
if dist.get_rank() == 1:
    time.sleep(0.3)  # so that the other rank waits; it learns of the loss before or after, with the same error
    os.kill(os.getpid(), signal.SIGKILL)
try:
    COLLECTIVES[sys.argv[1]]()
except RuntimeError as error:
    print(f"lost: {error}", flush=True)
