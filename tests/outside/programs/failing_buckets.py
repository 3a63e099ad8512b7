"""Trains by DistributedDataParallel while something fails, and expects the error that backward() raises to be a
GleanerError: failing_buckets.py name|size|lost."""

import os
import signal
import sys

import gleaner.torch as gln
import torch
import torch.distributed

how = sys.argv[1]
signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the launcher ends this program soon after the failure
gln.init()
# Each rank has a group of its own: only Gleaner connects the ranks.
torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)


def model_of(outputs):
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, outputs))
    model.register_comm_hook(None, gln.ddp_hook)
    return model


model = model_of(3)
model(torch.ones(2, 4)).sum().backward()
try:
    if how == "name":  # two models with buckets of the same name
        other = model_of(3)
        (model(torch.ones(2, 4)).sum() + other(torch.ones(2, 4)).sum()).backward()
    elif how == "size":
        kind = torch.float64 if gln.rank() == 1 else torch.float32
        odd = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(5, 2, dtype=kind))
        odd.register_comm_hook(None, gln.ddp_hook)
        odd(torch.ones(2, 5, dtype=kind)).sum().backward()
    else:
        if gln.rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        for _ in range(100_000):
            model(torch.ones(2, 4)).sum().backward()
except gln.GleanerError as error:
    expected = {"name": "comes twice", "size": "elements of fp64", "lost": "worker 1"}[how]
    assert expected in str(error) or "is lost" in str(error), error  # the other rank may have ended before
    print(f"caught {type(error).__name__}", file=sys.stderr)
    print("ok")
    if how == "name":
        sys.stdout.flush()
        os._exit(0)
