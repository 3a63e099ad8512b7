"""Operations that wait for their result, and through which gradients flow.

The gradient of an operation is an operation of the same process set, so all its ranks must call backward().
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional, Union

import torch

from gleaner.horovod.torch import operations
from gleaner.horovod.torch.compression import Compression, Compressor
from gleaner.horovod.torch.layer import present
from gleaner.horovod.torch.operations import Average, ReduceOp, Sum, synchronize
from gleaner.horovod.torch.process_sets import ProcessSet, global_process_set


def allreduce(
    tensor: torch.Tensor,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    compression: type[Compressor] = Compression.none,
    op: Optional[ReduceOp] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """Returns the reduction of `tensor` over all ranks. Arguments and errors: allreduce_async(), synchronize()."""
    compressed, context = compression.compress(tensor)
    options = average, op, prescale_factor, postscale_factor, process_set
    return compression.decompress(_Allreduce.apply(name, options, compressed)[0], context)


def allreduce_(
    tensor: torch.Tensor,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[ReduceOp] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """Overwrites `tensor` with its reduction over all ranks, and returns it. No gradient flows through it."""
    return synchronize(
        operations.allreduce_async_(tensor, average, name, op, prescale_factor, postscale_factor, process_set)
    )


def grouped_allreduce(
    tensors: Sequence[torch.Tensor],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    compression: type[Compressor] = Compression.none,
    op: Optional[ReduceOp] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> list[torch.Tensor]:
    """Returns the reductions of several tensors, which are one operation."""
    pairs = [compression.compress(each) for each in tensors]
    options = average, op, prescale_factor, postscale_factor, process_set
    results = _Allreduce.apply(name, options, *(compressed for compressed, _ in pairs))
    return [compression.decompress(result, context) for result, (_, context) in zip(results, pairs)]


def grouped_allreduce_(
    tensors: Sequence[torch.Tensor],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[ReduceOp] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> list[torch.Tensor]:
    """Overwrites several tensors with their reductions, and returns them."""
    return synchronize(
        operations.grouped_allreduce_async_(tensors, average, name, op, prescale_factor, postscale_factor, process_set)
    )


def allgather(
    tensor: torch.Tensor, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> torch.Tensor:
    """Returns the rows of all ranks' tensors, which may differ in their number of rows, in the order of ranks."""
    return _Allgather.apply(name, process_set, tensor)[0]


def grouped_allgather(
    tensors: Sequence[torch.Tensor], name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> list[torch.Tensor]:
    """Returns the rows of all ranks for each of several tensors, which are one operation."""
    return list(_Allgather.apply(name, process_set, *tensors))


def broadcast(
    tensor: torch.Tensor,
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """Returns the tensor of rank `root_rank` of the job."""
    return _Broadcast.apply(tensor, root_rank, name, process_set)


def broadcast_(
    tensor: torch.Tensor,
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> torch.Tensor:
    """Overwrites `tensor` with that of rank `root_rank` of the job, and returns it. No gradient flows through it."""
    return synchronize(operations.broadcast_async_(tensor, root_rank, name, process_set))


def alltoall(
    tensor: torch.Tensor,
    splits: Union[torch.Tensor, Sequence[int], None] = None,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> Union[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
    """Sends some rows of `tensor` to each rank; arguments: alltoall_async().

    Returns:
        The received tensor; with `splits`, also the number of rows from each rank.
    """
    received, rows = _Alltoall.apply(tensor, splits, name, process_set)
    return received if splits is None else (received, rows)


def reducescatter(
    tensor: torch.Tensor,
    name: Optional[str] = None,
    compression: type[Compressor] = Compression.none,
    op: ReduceOp = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> torch.Tensor:
    """Returns this rank's rows of the reduction of `tensor`; see reducescatter_async()."""
    compressed, context = compression.compress(tensor)
    options = op, process_set, prescale_factor, postscale_factor
    return compression.decompress(_Reducescatter.apply(name, options, compressed)[0], context)


def grouped_reducescatter(
    tensors: Sequence[torch.Tensor],
    name: Optional[str] = None,
    compression: type[Compressor] = Compression.none,
    op: ReduceOp = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> list[torch.Tensor]:
    """Returns this rank's rows of the reductions of several tensors, which are one operation."""
    pairs = [compression.compress(each) for each in tensors]
    options = op, process_set, prescale_factor, postscale_factor
    results = _Reducescatter.apply(name, options, *(compressed for compressed, _ in pairs))
    return [compression.decompress(result, context) for result, (_, context) in zip(results, pairs)]


class _Allreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, name: Optional[str], options: tuple[Any, ...], *tensors: torch.Tensor) -> Any:
        ctx.options = options
        average, *more = options
        return tuple(synchronize(operations.grouped_allreduce_async(tensors, average, name, *more)))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return None, None, *_Allreduce.apply(None, ctx.options, *gradients)


class _Allgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, name: Optional[str], process_set: ProcessSet, *tensors: torch.Tensor) -> Any:
        handle = operations.grouped_allgather_async(tensors, name, process_set)
        ctx.process_set, ctx.rows = process_set, [len(each) for each in tensors]
        return tuple(synchronize(handle))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        """Averages the gradients of all ranks, as Horovod does, and returns this rank's rows."""
        averages = grouped_allreduce(gradients, op=Average, process_set=ctx.process_set)
        of_ranks = allgather(torch.tensor([ctx.rows]), process_set=ctx.process_set)
        starts = of_ranks[: ctx.process_set.rank()].sum(0).tolist()
        return None, None, *(each.narrow(0, at, rows) for each, at, rows in zip(averages, starts, ctx.rows))


class _Broadcast(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, tensor: torch.Tensor, root_rank: int, name: Optional[str], process_set: ProcessSet
    ) -> torch.Tensor:
        ctx.root_rank, ctx.process_set = root_rank, process_set
        return synchronize(operations.broadcast_async(tensor, root_rank, name, process_set))

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        """Averages the gradients of all ranks, as Horovod does, for the root."""
        averaged = allreduce(gradient, op=Average, process_set=ctx.process_set)
        is_root = present().rank == ctx.root_rank
        return averaged if is_root else torch.zeros_like(averaged), None, None, None


class _Alltoall(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, splits: Any, name: Optional[str], process_set: ProcessSet) -> Any:
        received, rows = synchronize(operations.alltoall_async(tensor, splits, name, process_set))
        ctx.process_set, ctx.rows = process_set, rows
        ctx.mark_non_differentiable(rows)
        return received, rows

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor, _: Any) -> Any:
        return alltoall(gradient, ctx.rows, process_set=ctx.process_set)[0], None, None, None


class _Reducescatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, name: Optional[str], options: tuple[Any, ...], *tensors: torch.Tensor) -> Any:
        ctx.options = options
        return tuple(synchronize(operations.grouped_reducescatter_async(tensors, name, *options)))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        """Gathers the gradients, with the factors of the reduction: of a sum the number of ranks, as in Horovod."""
        op, process_set, before, after = ctx.options
        factor = before * after * (process_set.size() if op is Sum else 1)
        scaled = [each if factor == 1 else each * factor for each in gradients]
        return None, None, *grouped_allgather(scaled, process_set=process_set)
