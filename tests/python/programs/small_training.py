"""A small network for the check programs: its training by all ranks, and the same training within one process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gleaner.torch as gln
import numpy
import torch
from checking import data_of
from torch import nn


def everybodys(elements: int, kind: torch.dtype = torch.float32, seed: int = 0) -> list[torch.Tensor]:
    return [torch.from_numpy(data_of(rank, elements, seed)).to(kind) for rank in range(gln.size())]


def ordered_sum(parts: list[torch.Tensor], divide_by: int = 1) -> torch.Tensor:
    """Sums as rank_order_sum() does, but in PyTorch, which has bfloat16."""
    kind = parts[0].dtype
    wide = kind if kind in (torch.float64, torch.int32) else torch.float32
    total = parts[0].to(wide)
    for part in parts[1:]:
        total = total + part.to(wide)
    return (total if divide_by == 1 else total / divide_by).to(kind)


def equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Returns whether the tensors have the same type, shape and bits."""
    return a.dtype == b.dtype and a.shape == b.shape and bool((bits(a) == bits(b)).all())


def bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)


class Net(nn.Module):
    """A small network with a layer that only some forward passes use."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(20, 30)
        self.second = nn.Linear(30, 10)
        self.sometimes = nn.Linear(10, 10)

    def forward(self, data: torch.Tensor, detour: bool = False) -> torch.Tensor:
        out = self.second(torch.relu(self.first(data)))
        return self.sometimes(out) if detour else out


def net(seed: int = 1) -> Net:
    torch.manual_seed(seed)
    return Net()


def inputs(rank: int, step: int) -> torch.Tensor:
    return torch.from_numpy(numpy.random.default_rng([rank, step]).standard_normal((16, 20)).astype(numpy.float32))


def loss_of(model: nn.Module, rank: int, step: int, detour: bool = False) -> torch.Tensor:
    return model(inputs(rank, step), detour).square().mean()


def take_step(model: nn.Module, optimizer: torch.optim.Optimizer, number: int, detour: bool = False) -> None:
    """Makes the training step `number` with this rank's inputs."""
    optimizer.zero_grad()
    loss_of(model, gln.rank(), number, detour).backward()
    optimizer.step()


def reference(
    model: Net,
    optimizer: torch.optim.Optimizer,
    steps: int,
    passes: int = 1,
    detour_rank: int | None = None,
    sent_as: torch.dtype = torch.float32,
) -> None:
    """Trains in this process alone, with the same result as all ranks together, which send gradients as `sent_as`."""
    parameters = list(model.parameters())
    for step in range(steps):
        everyones = []
        for rank in range(gln.size()):
            optimizer.zero_grad(set_to_none=True)
            for number in range(passes):
                loss_of(model, rank, step * passes + number, rank == detour_rank).backward()
            everyones.append([None if p.grad is None else p.grad.clone() for p in parameters])
        for parameter, parts in zip(parameters, zip(*everyones)):
            average = averaged(parameter, [None if each is None else each.to(sent_as) for each in parts], sent_as)
            parameter.grad = None if average is None else average.to(parameter.dtype)
        optimizer.step()


def averaged(
    parameter: nn.Parameter, parts: Sequence[torch.Tensor | None], kind: torch.dtype = torch.float32
) -> torch.Tensor | None:
    """Returns the average, in which a missing gradient counts as zeros. Returns None if no rank has a gradient."""
    if all(part is None for part in parts):
        return None
    return ordered_sum(
        [torch.zeros_like(parameter, dtype=kind) if part is None else part for part in parts], gln.size()
    )


def assert_same_parameters(model: nn.Module, expected: nn.Module) -> None:
    for (name, ours), theirs in zip(model.named_parameters(), expected.parameters()):
        assert equal(ours, theirs), name


def momentum(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)


def same_on_all_ranks(model: nn.Module) -> bool:
    ours = torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])
    everybodys = gln.push_pull(
        torch.eye(gln.size())[gln.rank()][:, None] * ours, average=False, name=f"compared.{ours.numel()}"
    )
    return all(equal(theirs, ours) for theirs in everybodys)


def distributed(model: nn.Module, **more: Any) -> torch.optim.Optimizer:
    return gln.DistributedOptimizer(momentum(model), model.named_parameters(), **more)
