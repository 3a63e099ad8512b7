"""Rank 0 lacks a part of the program that the other ranks have, and is busy with something else: missing_part.py
hook|optimizer|push_pull."""

import sys
import time

import gleaner.torch as gln
import torch
import torch.distributed

gln.init()
model = torch.nn.Linear(4, 3)
has_part = gln.rank() != 0
if sys.argv[1] == "hook":
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    model = torch.nn.parallel.DistributedDataParallel(model)
    if has_part:
        model.register_comm_hook(None, gln.ddp_hook)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
if sys.argv[1] == "optimizer" and has_part:
    optimizer = gln.DistributedOptimizer(optimizer, model.named_parameters())
model(torch.ones(2, 4)).sum().backward()
if sys.argv[1] == "push_pull" and has_part:
    gln.push_pull(torch.ones(3), name="loss")
optimizer.step()
time.sleep(100_000)
