"""One rank's tensors and objects on all ranks, bit for bit: how a job starts, or goes on from a checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Union

import numpy
import torch

from gleaner import exchange, process
from gleaner.errors import InvalidArgumentError

NamedTensors = Union[Mapping[str, Any], Iterable[tuple[str, torch.Tensor]]]


def broadcast(tensor: torch.Tensor, root_rank: int = 0) -> torch.Tensor:
    """Rank `root_rank`'s `tensor`, dense and of any type, on all ranks, bit for bit, as a new tensor. Blocks."""
    return broadcast_(tensor.detach().clone(), root_rank)


def broadcast_(tensor: torch.Tensor, root_rank: int = 0) -> torch.Tensor:
    """Overwrites `tensor` with that of rank `root_rank`, and returns it. Blocks. Shapes and types are to be alike."""
    if tensor.layout is not torch.strided:
        raise TypeError(f"{tensor.layout} tensors are not supported; pass tensor.to_dense()")
    _broadcast_packed([tensor.detach()], root_rank)
    return tensor


def broadcast_object(value: Any, root_rank: int = 0) -> Any:
    """Rank `root_rank`'s `value`, pickled, on all ranks; what the others pass is not looked at. Blocks."""
    return exchange.broadcast_object(process.current(), value, root_rank)


def broadcast_parameters(params: NamedTensors, root_rank: int = 0) -> None:
    """Overwrites tensors with those of rank `root_rank`: model.state_dict() or model.named_parameters(). Blocks.

    InvalidArgumentError when this rank's names, shapes or types are not those of the root.
    """
    session = process.current()
    tensors = [(name, tensor.detach()) for name, tensor in _named(params) if isinstance(tensor, torch.Tensor)]
    ours = [(name, tuple(tensor.shape), str(tensor.dtype)) for name, tensor in tensors]
    theirs = exchange.broadcast_object(session, ours, root_rank)
    if ours != theirs:
        wrong = next((pair for pair in zip(ours, theirs) if pair[0] != pair[1]), (f"{len(ours)} of them", len(theirs)))
        raise InvalidArgumentError(
            f"the tensors of rank {session.topology.rank} differ from those of rank {root_rank}: {wrong[0]} here, "
            f"{wrong[1]} there; build the same model on all ranks"
        )
    _broadcast_packed([tensor for _, tensor in tensors], root_rank)


def broadcast_optimizer_state(optimizer: torch.optim.Optimizer, root_rank: int = 0) -> None:
    """Gives every rank the optimizer state of rank `root_rank`: tensors, scalars and hyperparameters. Blocks."""
    session = process.current()
    is_root = session.topology.rank == root_rank
    state = exchange.broadcast_object(session, optimizer.state_dict() if is_root else None, root_rank)
    if not is_root:
        optimizer.load_state_dict(state)


def _named(params: NamedTensors) -> list[tuple[str, Any]]:
    """Names and values; raises for what users take for a model's state."""
    if isinstance(params, Mapping):
        if {"state", "param_groups"} <= params.keys():
            raise InvalidArgumentError(
                "this is the state_dict() of an optimizer: call broadcast_optimizer_state(optimizer, root_rank)"
            )
        return list(params.items())
    named = list(params)
    for each in named:
        if not (isinstance(each, (tuple, list)) and len(each) == 2 and isinstance(each[0], str)):
            raise TypeError(
                "broadcast_parameters() takes model.state_dict() or model.named_parameters(), which have names; it "
                f"got {type(each).__name__} without one"
            )
    return named


def _broadcast_packed(tensors: list[torch.Tensor], root: int) -> None:
    """One stream of bytes for all tensors: a model has many small ones, and each broadcast is a round trip."""
    tensors = [tensor for tensor in tensors if tensor.numel() > 0]
    packed = numpy.concatenate([_bytes_of(tensor) for tensor in tensors] or [numpy.empty(0, numpy.uint8)])
    exchange.broadcast_bytes(process.current(), packed, root)
    start = 0
    for tensor in tensors:
        size = tensor.numel() * tensor.element_size()
        source = torch.from_numpy(packed[start : start + size].copy()).view(tensor.dtype).reshape(tensor.shape)
        tensor.copy_(source)
        start += size


def _bytes_of(tensor: torch.Tensor) -> numpy.ndarray:
    """Not of an empty tensor: PyTorch 1.13 cannot view it as another type."""
    return tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
