"""Trains in three ways, whose bits a test compares between jobs: training_bits.py FILE.

DistributedDataParallel's process group meets by FILE, which must not exist. Each rank prints a line of JSON with a
digest of the parameters after training with CrossBarrier, with ddp_hook and fp16 buckets, and asynchronously, and with
the algorithm that sums an accumulating tensor.
"""

from __future__ import annotations

import hashlib
import json
import sys

import gleaner.torch as gln
import torch
import torch.distributed
from small_training import bits, momentum, net, take_step
from torch import nn

STEPS = 4


class Halves(nn.Module):
    """A model whose gradients are fp16. It computes in fp32, as PyTorch multiplies no fp16 matrices on a CPU."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.weights = nn.ParameterList([nn.Parameter(torch.randn(size).half()) for size in (5000, 300, 7)])

    def forward(self, scale: float) -> torch.Tensor:
        return sum((scale * (weight.float() - 1)).square().mean() * 100 for weight in self.weights)


class Exact(nn.Module):
    """A model whose gradients are small whole numbers, so that sums of its changes do not depend on their order."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.arange(3000, dtype=torch.float32) / 8)

    def forward(self, step: int) -> torch.Tensor:
        factors = (torch.arange(self.weight.numel()) + 3 * step + gln.rank()) % 17
        return (self.weight * factors).sum()


def digest(model: nn.Module) -> str:
    return hashlib.sha256(b"".join(bits(each).numpy().tobytes() for each in model.parameters())).hexdigest()


def with_cross_barrier() -> str:
    model = net()
    optimizer = gln.CrossBarrier(momentum(model), model)
    for step in range(STEPS):
        take_step(model, optimizer, step)
    optimizer.synchronize()
    return digest(model)


def with_ddp_hook() -> str:
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{sys.argv[1]}", rank=gln.rank(), world_size=gln.size()
    )
    model = Halves()
    wrapped = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.005)
    wrapped.register_comm_hook(None, gln.ddp_hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for step in range(STEPS):
        optimizer.zero_grad()
        wrapped(1 + 0.37 * gln.rank() + 0.1 * step).backward()
        optimizer.step()
    return digest(model)


def asynchronously() -> str:
    model = Exact()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.25)
    optimizer = gln.DistributedOptimizer(optimizer, model.named_parameters(), asynchronous=True)
    for step in range(STEPS):
        optimizer.zero_grad()
        model(step).backward()
        optimizer.step()
    optimizer.synchronize()
    return digest(model)


def algorithm_of_running_sums() -> str:
    gln.accumulate(torch.ones(3), "running")
    return gln.tensor_plan("running")["algorithm"]


if __name__ == "__main__":
    torch.set_num_threads(1)
    gln.init()
    digests = {each.__name__: each() for each in (with_cross_barrier, with_ddp_hook, asynchronously)}
    print(json.dumps({**digests, "running": algorithm_of_running_sums()}), flush=True)
    gln.shutdown()
