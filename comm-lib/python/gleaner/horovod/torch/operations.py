"""Operations that return a handle, and what takes handles.

Ranks may submit operations in any order: an operation starts once all ranks of its process set have submitted it under
the same name. Operations without a name match in the order in which a rank submits those of its kind. If ranks differ
in the type, shape or options of an operation, synchronize() raises an InvalidArgumentError on every rank, and the
session stays usable. All functions are thread safe.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, Callable, Optional, Union

import torch

from gleaner.errors import InvalidArgumentError
from gleaner.horovod.torch.layer import Layer, present
from gleaner.horovod.torch.negotiation import Description
from gleaner.horovod.torch.process_sets import ProcessSet, global_process_set
from gleaner.horovod.torch.requests import Request
from gleaner.torch.distributed import memory


class ReduceOp(enum.Enum):
    """The reductions. Adasum has only its name: no operation takes it."""

    Average = "Average"
    Sum = "Sum"
    Adasum = "Adasum"
    Min = "Min"
    Max = "Max"
    Product = "Product"


Average, Sum, Adasum = ReduceOp.Average, ReduceOp.Sum, ReduceOp.Adasum
Min, Max, Product = ReduceOp.Min, ReduceOp.Max, ReduceOp.Product


def allreduce_async(
    tensor: torch.Tensor,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[ReduceOp] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts a reduction of `tensor` over all ranks, into a new tensor. Does not block.

    Args:
        tensor: Dense tensor of any type, with the same shape and type on all ranks. It must stay unchanged until
            synchronize().
        average: Earlier form of `op`: True is Average, False is Sum.
        name: Name of the operation; None: this is the next allreduce without a name on each rank.
        op: Average (the default; of integers, cut off), Sum, Min, Max or Product.
        prescale_factor: Factor of each rank's tensor.
        postscale_factor: Factor of the result. Integers are multiplied as float64, and cut off.
        process_set: The ranks.

    Returns:
        A handle for poll() and synchronize().

    Raises:
        InvalidArgumentError: An operation of this name is in flight; this rank is not in the process set; or `op` is
            not possible for the tensor.
        GleanerError: The session has failed, or there is none.
    """
    return start_allreduce([tensor], _op(op, average), name, (prescale_factor, postscale_factor), process_set)


def allreduce_async_(
    tensor: torch.Tensor,
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[ReduceOp] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts a reduction that overwrites `tensor`; else as allreduce_async()."""
    scales = (prescale_factor, postscale_factor)
    return start_allreduce([tensor], _op(op, average), name, scales, process_set, in_place=True)


def grouped_allreduce_async(
    tensors: Sequence[torch.Tensor],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[ReduceOp] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts the reduction of several tensors as one operation; else as allreduce_async()."""
    scales = (prescale_factor, postscale_factor)
    return start_allreduce(tensors, _op(op, average), name, scales, process_set, is_group=True)


def grouped_allreduce_async_(
    tensors: Sequence[torch.Tensor],
    average: Optional[bool] = None,
    name: Optional[str] = None,
    op: Optional[ReduceOp] = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts a reduction that overwrites several tensors, as one operation; else as allreduce_async()."""
    scales = (prescale_factor, postscale_factor)
    return start_allreduce(tensors, _op(op, average), name, scales, process_set, in_place=True, is_group=True)


def start_allreduce(
    tensors: Sequence[torch.Tensor],
    op: ReduceOp,
    name: Optional[str],
    scales: tuple[float, float],
    process_set: ProcessSet,
    in_place: bool = False,
    is_group: bool = False,
    priority: Optional[int] = None,
) -> int:
    """Starts the reduction of some tensors, and returns its handle. With a priority, they are gradients."""
    _check_op(op, tensors, "allreduce")
    unpack = None if is_group else _first
    more = {"op": op.value, "scales": tuple(map(float, scales)), "priority": priority}
    return _submit("allreduce", tensors, name, process_set, in_place, unpack, **more)


def allgather_async(
    tensor: torch.Tensor, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> int:
    """Starts to gather the rows of all ranks' tensors, which may differ in their number of rows, in one tensor."""
    return _submit("allgather", [_with_rows(tensor, "allgather")], name, process_set, unpack=_first)


def grouped_allgather_async(
    tensors: Sequence[torch.Tensor], name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> int:
    """Starts to gather several tensors as one operation; else as allgather_async()."""
    return _submit("allgather", [_with_rows(each, "allgather") for each in tensors], name, process_set)


def broadcast_async(
    tensor: torch.Tensor,
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts to copy the tensor of rank `root_rank` of the job to all ranks, into a new tensor."""
    root = _root(root_rank, process_set)
    return _submit("broadcast", [tensor], name, process_set, unpack=_first, root=root)


def broadcast_async_(
    tensor: torch.Tensor,
    root_rank: int,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts to overwrite `tensor` with that of rank `root_rank` of the job."""
    root = _root(root_rank, process_set)
    return _submit("broadcast", [tensor], name, process_set, True, _first, root=root)


def alltoall_async(
    tensor: torch.Tensor,
    splits: Union[torch.Tensor, Sequence[int], None] = None,
    name: Optional[str] = None,
    process_set: ProcessSet = global_process_set,
) -> int:
    """Starts to send some rows of `tensor` to each rank, and to receive some rows from each.

    Args:
        tensor: Dense tensor of any type.
        splits: Number of rows for each rank of the process set; None: the same number for each.
        name: As in allreduce_async().
        process_set: The ranks.

    Returns:
        A handle, whose result is the received tensor, and the number of rows from each rank, as `splits` are.
    """
    layer = present()
    layer.controller(process_set)  # raises an error if this rank is not in the set
    rows = _rows_for_each(_with_rows(tensor, "alltoall"), splits, process_set.size())
    like = splits if isinstance(splits, torch.Tensor) else torch.empty(0, dtype=torch.int32)

    def unpack(result: tuple[torch.Tensor, list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        return result[0], like.new_tensor(result[1])

    return _submit("alltoall", [tensor], name, process_set, unpack=unpack, numbers=rows)


def reducescatter_async(
    tensor: torch.Tensor,
    name: Optional[str] = None,
    op: ReduceOp = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    """Starts a reduction, of which each rank gets some rows; the first ranks get one more if the rows do not divide.

    The arguments are those of allreduce_async().
    """
    return _start_reducescatter([tensor], name, op, process_set, (prescale_factor, postscale_factor), _first)


def grouped_reducescatter_async(
    tensors: Sequence[torch.Tensor],
    name: Optional[str] = None,
    op: ReduceOp = Average,
    process_set: ProcessSet = global_process_set,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
) -> int:
    """Starts the reduction of several tensors as one operation; else as reducescatter_async()."""
    return _start_reducescatter(tensors, name, op, process_set, (prescale_factor, postscale_factor), None)


def sparse_allreduce_async(
    tensor: torch.Tensor,
    name: str,
    op: ReduceOp = Average,
    process_set: ProcessSet = global_process_set,
) -> Callable[[], torch.Tensor]:
    """Starts the sum or average of sparse tensors, and returns the function that waits for the result.

    Gathers the elements of all ranks; their tensors may differ in number of elements.
    """
    handle, total = start_sparse_allreduce(tensor, name, op, process_set)
    return lambda: total(synchronize(handle))


def start_sparse_allreduce(
    tensor: torch.Tensor, name: Optional[str], op: ReduceOp, process_set: ProcessSet
) -> tuple[int, Callable[[Sequence[torch.Tensor]], torch.Tensor]]:
    """Returns the handle of an operation, and the function that makes the sparse result of its result."""
    if op not in (Sum, Average):
        raise InvalidArgumentError(f"sparse tensors have no {op.value}: use Sum or Average")
    own = tensor.detach().coalesce()
    tensors = [own.indices().t().contiguous(), own.values()]
    handle = grouped_allgather_async(tensors, None if name is None else f"{name}.sparse", process_set)

    def total(gathered: Sequence[torch.Tensor]) -> torch.Tensor:
        indices, values = gathered
        total = torch.sparse_coo_tensor(indices.t(), values, tensor.shape).coalesce()
        return total / process_set.size() if op is Average else total

    return handle, total


def barrier(process_set: ProcessSet = global_process_set) -> None:
    """Waits until all ranks of the process set have called this."""
    synchronize(_submit("barrier", [], None, process_set))


def join(device: int = -1) -> int:
    """Contributes zeros to the sums and averages of allreduce until all ranks have called join(). Collective; blocks.

    Other operations of ranks that have not joined raise an error. Averages divide by the number of all ranks.

    Args:
        device: Ignored.

    Returns:
        The rank that has joined last.
    """
    return present().join()


def poll(handle: int) -> bool:
    """Returns whether synchronize(handle) would not block.

    Raises:
        InvalidArgumentError: The handle is unknown, or was synchronized before.
    """
    return present().poll(handle)


def synchronize(handle: int) -> Any:
    """Waits for an operation and returns its result: a tensor, a list of tensors, or those of alltoall_async().

    Returns None if the handle is unknown, or was synchronized before.

    Raises:
        InvalidArgumentError: Ranks differ in the operation, or it is not possible since a rank has joined.
        GleanerError: The session has failed.
    """
    return present().synchronize(handle)


def _submit(
    kind: str,
    tensors: Sequence[torch.Tensor],
    name: Optional[str],
    process_set: ProcessSet,
    in_place: bool = False,
    unpack: Optional[Callable[[Any], Any]] = None,
    **more: Any,
) -> int:
    for each in tensors:
        memory.check(each)
    layer: Layer = present()
    layer.controller(process_set)  # raises an error before the operation takes a number
    description = Description(
        kind,
        layer.name(process_set, kind, name),
        tuple(str(each.dtype).rpartition(".")[2] for each in tensors),
        tuple(tuple(each.shape) for each in tensors),
        tuple(each.device.type for each in tensors),
        **more,
    )
    return layer.submit(process_set, Request(description, tensors, in_place, unpack))


def _start_reducescatter(
    tensors: Sequence[torch.Tensor],
    name: Optional[str],
    op: ReduceOp,
    process_set: ProcessSet,
    scales: tuple[float, float],
    unpack: Optional[Callable[[Any], Any]],
) -> int:
    _check_op(op, tensors, "reducescatter")
    checked = [_with_rows(each, "reducescatter") for each in tensors]
    more = {"op": op.value, "scales": tuple(map(float, scales))}
    return _submit("reducescatter", checked, name, process_set, unpack=unpack, **more)


def _op(op: Optional[ReduceOp], average: Optional[bool]) -> ReduceOp:
    if op is not None and average is not None:
        raise InvalidArgumentError("pass op or average, not both")
    return (Sum if average is False else Average) if op is None else op


def _check_op(op: ReduceOp, tensors: Sequence[torch.Tensor], kind: str) -> None:
    if not isinstance(op, ReduceOp):
        raise InvalidArgumentError(f"op must be Average, Sum, Min, Max or Product, not {op!r}")
    if op is Adasum:
        raise InvalidArgumentError(f"{kind}: Gleaner has no Adasum; use op=Average")
    if op in (Min, Max) and any(each.is_complex() for each in tensors):
        raise InvalidArgumentError(f"{kind}: complex numbers have no {op.value}")


def _with_rows(tensor: torch.Tensor, kind: str) -> torch.Tensor:
    memory.check(tensor)
    if tensor.dim() == 0:
        raise InvalidArgumentError(f"{kind} takes tensors with at least one dimension: pass tensor.view(1)")
    return tensor


def _root(rank: int, process_set: ProcessSet) -> int:
    """Returns the rank in the process set of a rank of the job."""
    present().controller(process_set)
    if rank not in process_set.ranks:
        raise InvalidArgumentError(f"root rank {rank} is not in {process_set}")
    return process_set.ranks.index(rank)


def _rows_for_each(
    tensor: torch.Tensor, splits: Union[torch.Tensor, Sequence[int], None], size: int
) -> tuple[int, ...]:
    if splits is None:
        if len(tensor) % size:
            raise InvalidArgumentError(f"alltoall: {size} ranks can't share {len(tensor)} rows equally: pass splits")
        return (len(tensor) // size,) * size
    if isinstance(splits, torch.Tensor):
        if splits.dtype not in (torch.int32, torch.int64):
            raise InvalidArgumentError(f"alltoall: splits must be int32, not {splits.dtype}")
        splits = splits.tolist()
    if len(splits) != size or min(splits) < 0 or sum(splits) > len(tensor):
        raise InvalidArgumentError(
            f"alltoall: splits {splits} must be one number for each of {size} ranks, and at most {len(tensor)} rows"
        )
    return tuple(map(int, splits))


def _first(results: Sequence[torch.Tensor]) -> torch.Tensor:
    return results[0]
