"""Trains a small model with DistributedDataParallel and ddp_hook until it is killed: ddp_loop.py FILE.

DDP's process group meets by FILE, which must not exist. Rank 1 starts each backward pass late, so that
rank 0 waits."""

from __future__ import annotations

import sys
import time

import gleaner.torch as gln
import torch
import torch.distributed
from small_training import loss_of, net
from torch import nn

if __name__ == "__main__":
    torch.set_num_threads(1)
    gln.init()
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{sys.argv[1]}", rank=gln.rank(), world_size=gln.size()
    )
    model = nn.parallel.DistributedDataParallel(net(), find_unused_parameters=True)
    model.register_comm_hook(None, gln.ddp_hook)
    step = 0
    while True:
        time.sleep(0.05 * gln.rank())
        loss_of(model, gln.rank(), step).backward()
        step += 1
