"""Checks a job in which only even ranks have a GPU. Odd ranks see none, and use tensors in host memory."""

from __future__ import annotations

import os

import gleaner.torch as gln
import ranks
import torch
from small_training import equal, everybodys

IS_WITHOUT_GPU = int(os.environ["GLEANER_WORKER"]) % 2 == 1
if IS_WITHOUT_GPU:
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # before PyTorch first looks for GPUs


def device() -> torch.device:
    return torch.device("cpu") if IS_WITHOUT_GPU else ranks.device_of(gln.local_rank())


def check_sum_or_clear_error() -> str:
    parts = everybodys(100_000)
    try:
        result = gln.push_pull(parts[gln.rank()].to(device()), False, name="mixed")
    except gln.GleanerError as error:
        assert "GPU" in str(error) or "CUDA" in str(error), f"the error does not tell the cause: {error}"
        return f"refused: {error}"
    assert result.device == device()
    assert equal(result.cpu(), ranks.sum_of(parts))
    return "summed"


def check_broadcast() -> str:
    tensor = (torch.arange(1000.0) + gln.rank()).to(device())
    gln.broadcast_(tensor, root_rank=0)
    assert tensor.tolist() == torch.arange(1000.0).tolist()
    return "from a GPU to a host"


def check_training() -> None:
    torch.manual_seed(1)
    model = torch.nn.Linear(50, 20).to(device())
    optimizer = gln.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
    for step in range(3):
        optimizer.zero_grad()
        data = torch.randn(8, 50, generator=torch.Generator().manual_seed(10 * step + gln.rank()))
        model(data.to(device())).square().mean().backward()
        optimizer.step()
    ours = model.weight.detach().cpu()
    assert torch.allclose(gln.push_pull(ours, name="weights"), ours), "ranks have other weights"


if __name__ == "__main__":
    ranks.run(globals(), IS_WITHOUT_GPU)
