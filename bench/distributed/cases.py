"""The cases of bench/collectives: a collective with a size. A worker makes the same calls of both backends for a case.

The size of a case is that of the largest tensor of one rank: the input of reduce_scatter and all_to_all, the output of
all_gather.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

FLOAT_BYTES = 4
REPLICAS = "all_reduce_replicas"
SHARDS = 2  # of which this case sums replicas


@dataclass
class Case:
    """Tensors of one rank for one case.

    Attributes:
        prepare: Resets the tensors. To be called before each call.
        call: Makes the collective in the process group that it is given.
        outputs: Tensors with the results.
        wanted: Values of the first and the last element of each of the outputs.
    """

    prepare: Callable[[], None]
    call: Callable[[Any], Any]
    outputs: list[torch.Tensor]
    wanted: list[tuple[float, float]]

    def check(self) -> None:
        """Raises RuntimeError if the first or last element of a result is wrong."""
        for output, wanted in zip(self.outputs, self.wanted):
            found = tuple(output[[0, -1]].tolist())
            if found != wanted:
                raise RuntimeError(f"a result is {found[0]} ... {found[1]}, expected {wanted[0]} ... {wanted[1]}")


def elements(size: int, ranks: int) -> int:
    """Returns how many elements each rank has of tensors that are cut into a block for each rank."""
    return max(1, size // FLOAT_BYTES // ranks)


def all_reduce(size: int, rank: int, ranks: int) -> Case:
    tensor = torch.empty(size // FLOAT_BYTES)
    total = float(ranks * (ranks + 1) // 2)
    return Case(
        lambda: tensor.fill_(rank + 1),
        lambda group: dist.all_reduce(tensor, group=group),
        [tensor],
        [(total, total)],
    )


def all_reduce_replicas(size: int, rank: int, ranks: int) -> Case:
    """Sums over the replicas of HSDP, all shards at once. Every SHARDS-th rank has a replica of the same shard."""
    tensor = torch.empty(size // FLOAT_BYTES)
    total = float(sum(each + 1 for each in range(rank % SHARDS, ranks, SHARDS)))
    return Case(
        lambda: tensor.fill_(rank + 1),
        lambda group: dist.all_reduce(tensor, group=group),
        [tensor],
        [(total, total)],
    )


def broadcast(size: int, rank: int, ranks: int) -> Case:
    tensor = torch.full((size // FLOAT_BYTES,), 1.0 if rank == 0 else 0.0)

    def prepare() -> None:
        if rank > 0:
            tensor[[0, -1]] = 0.0

    return Case(prepare, lambda group: dist.broadcast(tensor, 0, group=group), [tensor], [(1.0, 1.0)])


def of_blocks(given: torch.Tensor, output: torch.Tensor, call: Callable[[Any], Any], ends: tuple[float, float]) -> Case:
    """Returns a case whose output begins as zeros."""

    def prepare() -> None:
        output[[0, -1]] = 0.0

    return Case(prepare, call, [output], [ends])


def all_gather_into_tensor(size: int, rank: int, ranks: int) -> Case:
    count = elements(size, ranks)
    given, output = torch.full((count,), rank + 1.0), torch.zeros(ranks * count)
    gather = getattr(dist, "all_gather_into_tensor", None) or dist._all_gather_base
    return of_blocks(given, output, lambda group: gather(output, given, group=group), (1.0, float(ranks)))


def all_gather(size: int, rank: int, ranks: int) -> Case:
    count = elements(size, ranks)
    given, outputs = torch.full((count,), rank + 1.0), [torch.zeros(count) for _ in range(ranks)]

    def prepare() -> None:
        for output in outputs:
            output[[0, -1]] = 0.0

    wanted = [(each + 1.0, each + 1.0) for each in range(ranks)]
    return Case(prepare, lambda group: dist.all_gather(outputs, given, group=group), outputs, wanted)


def reduce_scatter_tensor(size: int, rank: int, ranks: int) -> Case:
    count = elements(size, ranks)
    given, output = torch.full((ranks * count,), rank + 1.0), torch.zeros(count)
    scatter = getattr(dist, "reduce_scatter_tensor", None) or dist._reduce_scatter_base
    total = float(ranks * (ranks + 1) // 2)
    return of_blocks(given, output, lambda group: scatter(output, given, group=group), (total, total))


def reduce_scatter(size: int, rank: int, ranks: int) -> Case:
    count = elements(size, ranks)
    given, output = [torch.full((count,), rank + 1.0) for _ in range(ranks)], torch.zeros(count)
    total = float(ranks * (ranks + 1) // 2)
    return of_blocks(given[0], output, lambda group: dist.reduce_scatter(output, given, group=group), (total, total))


def all_to_all_single(size: int, rank: int, ranks: int) -> Case:
    count = elements(size, ranks)
    given, output = torch.full((ranks * count,), rank + 1.0), torch.zeros(ranks * count)
    return of_blocks(
        given, output, lambda group: dist.all_to_all_single(output, given, group=group), (1.0, float(ranks))
    )


CASES: dict[str, Callable[[int, int, int], Case]] = {
    "all_reduce": all_reduce,
    REPLICAS: all_reduce_replicas,
    "broadcast": broadcast,
    "all_gather": all_gather,
    "all_gather_into_tensor": all_gather_into_tensor,
    "reduce_scatter": reduce_scatter,
    "reduce_scatter_tensor": reduce_scatter_tensor,
    "all_to_all_single": all_to_all_single,
}
