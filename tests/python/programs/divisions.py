"""Checks that sums of float16 and bfloat16 have the same bits for every division of the same ranks into workers.

The values' sums are exact in float32. Their sums over all ranks leave the range of float16."""

from __future__ import annotations

import gleaner.torch as gln
import torch
from checking import run_checks
from small_training import equal, ordered_sum
from torch import nn

HALVES = (torch.float16, torch.bfloat16)


def everybodys(kind: torch.dtype) -> list[torch.Tensor]:
    """Returns the contribution of each rank: values of up to 20000 in steps of 2**-3, in several partitions."""
    generator = torch.Generator().manual_seed(7)
    return [(torch.randint(-160_000, 160_000, (70_001,), generator=generator) / 8).to(kind) for _ in range(gln.size())]


def check_an_average_of_20000_is_20000() -> None:
    for kind in HALVES:
        mine = torch.full((4,), 20000.0, dtype=kind)
        assert torch.equal(gln.push_pull(mine, name=f"twenty thousand.{kind}"), mine), kind


def check_averages_and_sums_are_rounded_once() -> None:
    for kind in HALVES:
        parts = everybodys(kind)
        mean = gln.push_pull(parts[gln.rank()], name=f"mean.{kind}")
        assert equal(mean, ordered_sum(parts, gln.size())), kind
        total = gln.push_pull(parts[gln.rank()], average=False, name=f"sum.{kind}")
        assert equal(total, ordered_sum(parts)), kind
        assert kind != torch.float16 or bool(total.isinf().any()), "some sums lie outside the range of float16"


def check_gradients_are_rounded_once() -> None:
    for kind in HALVES:
        model = nn.Linear(8, 1, bias=False).to(kind)
        nn.init.zeros_(model.weight)
        optimizer = gln.DistributedOptimizer(
            torch.optim.SGD(model.parameters(), lr=1.0), named_parameters=[(f"weight.{kind}", model.weight)]
        )
        # The gradient of a rank is its row: 20000, and a part that differs from rank to rank.
        rows = [torch.tensor([[20000.0, 1.0, 2.0**-3 * rank] + [rank] * 5]).to(kind) for rank in range(gln.size())]
        (model.weight * rows[gln.rank()]).sum().backward()
        assert model.weight.grad is not None
        assert equal(model.weight.grad, ordered_sum(rows, gln.size())), kind
        optimizer.step()
        assert equal(model.weight.detach(), -ordered_sum(rows, gln.size())), kind


if __name__ == "__main__":
    gln.init()
    run_checks(globals())
    gln.shutdown()
