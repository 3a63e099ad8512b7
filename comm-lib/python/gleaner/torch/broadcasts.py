"""Copies tensors and objects of one rank to all ranks, bit for bit, when a job starts or resumes from a checkpoint.

All public functions here are collective: every rank must call them in the same order and with the same root rank. They
block, and they may be called from one thread at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Union

import numpy
import torch

from gleaner import exchange, process
from gleaner.errors import InvalidArgumentError
from gleaner.torch.tensors import bytes_of, check_writable, pickled

NamedTensors = Union[Mapping[str, Any], Iterable[tuple[str, torch.Tensor]]]


def broadcast(tensor: torch.Tensor, root_rank: int = 0) -> torch.Tensor:
    """Copies the tensor of rank `root_rank` to all ranks, bit for bit, into a new tensor. Collective; blocks.

    Args:
        tensor: Dense tensor of any type, with the same shape and type on all ranks. Only the root's values matter.
        root_rank: Rank whose tensor is copied; the same on all ranks.

    Returns:
        A new tensor with the shape and type of `tensor`. No gradient flows through it.

    Raises:
        TypeError: `tensor` is sparse.
        GleanerError: As in gleaner.broadcast().
    """
    return broadcast_(tensor.detach().clone(), root_rank)


def broadcast_(tensor: torch.Tensor, root_rank: int = 0) -> torch.Tensor:
    """Overwrites `tensor` with the tensor of rank `root_rank`, bit for bit. Collective; blocks.

    Args:
        tensor: Dense tensor of any type, with the same shape and type on all ranks.
        root_rank: Rank whose tensor is copied; the same on all ranks.

    Returns:
        `tensor` itself.

    Raises:
        TypeError: `tensor` is sparse, or PyTorch cannot write into it.
        GleanerError: As in gleaner.broadcast().
    """
    if tensor.layout is not torch.strided:
        raise TypeError(f"{tensor.layout} tensors are not supported; pass tensor.to_dense()")
    check_writable(tensor)
    packed = _packed([tensor])
    description = f"{tuple(tensor.shape)} {tensor.dtype}"
    exchange.broadcast_described(process.current(), packed, description, root_rank)
    _unpack(packed, [tensor.detach()])
    return tensor


def broadcast_object(value: Any, root_rank: int = 0) -> Any:
    """Copies an object of rank `root_rank` to all ranks with pickle, as gleaner.broadcast_object(). Collective; blocks.

    Args:
        value: Object that can be pickled; it may hold tensors.
        root_rank: As in gleaner.broadcast_object().

    Returns:
        As gleaner.broadcast_object().

    Raises:
        GleanerError: As in gleaner.broadcast_object().
    """
    return exchange.broadcast_object(process.current(), value, root_rank, pickled)


def broadcast_parameters(params: NamedTensors, root_rank: int = 0) -> None:
    """Overwrites a model's tensors with the tensors of rank `root_rank`, bit for bit. Collective; blocks.

    Args:
        params: model.state_dict() or model.named_parameters(). Values that are not tensors are ignored.
        root_rank: Rank whose tensors are copied; the same on all ranks.

    Raises:
        TypeError: `params` is an iterable whose elements are not pairs of a name and a tensor.
        InvalidArgumentError: The names, shapes or types of this rank differ from the root's (only this rank raises);
            `params` is the state_dict() of an optimizer; `root_rank` is not a rank; or ranks pass different roots.
        GleanerError: There is no session, or it has failed; see gleaner.errors.
    """
    session = process.current()
    tensors = [(name, tensor.detach()) for name, tensor in _named(params) if isinstance(tensor, torch.Tensor)]
    for _, tensor in tensors:
        check_writable(tensor)
    ours = [(name, tuple(tensor.shape), str(tensor.dtype)) for name, tensor in tensors]
    theirs = exchange.broadcast_object(session, ours, root_rank)
    if ours != theirs:
        numbers = f"{len(ours)} tensors", f"{len(theirs)} tensors"
        mine, roots = next((pair for pair in zip(ours, theirs) if pair[0] != pair[1]), numbers)
        rank = session.rank_info.rank
        raise InvalidArgumentError(
            f"the models of two ranks differ: rank {rank} has {mine}, rank {root_rank} has {roots}; build the same "
            "model on all ranks"
        )
    broadcast_packed([tensor for _, tensor in tensors], root_rank)


def broadcast_optimizer_state(optimizer: torch.optim.Optimizer, root_rank: int = 0) -> None:
    """Copies the optimizer state of rank `root_rank` to all ranks. Collective; blocks.

    The state holds tensors, scalars and hyperparameters, and is sent by pickle. The optimizers of other ranks need not
    have a state before the call.

    Args:
        optimizer: The same kind of optimizer, with the same parameter groups, on all ranks.
        root_rank: Rank whose state is copied; the same on all ranks.

    Raises:
        InvalidArgumentError: `root_rank` is not a rank, or the optimizer's class differs from the root's (only this
            rank raises these), or ranks pass different roots (all ranks raise this).
        GleanerError: There is no session, or it has failed; see gleaner.errors.
    """
    session = process.current()
    is_root = session.rank_info.rank == root_rank
    ours = type(optimizer).__name__
    state_of_root = (ours, optimizer.state_dict()) if is_root else None
    theirs, state = exchange.broadcast_object(session, state_of_root, root_rank, pickled)
    if ours != theirs:
        raise InvalidArgumentError(
            f"the optimizer of rank {session.rank_info.rank} is of class {ours}, and that of rank {root_rank} of "
            f"class {theirs}; construct the same optimizer on all ranks"
        )
    if not is_root:
        optimizer.load_state_dict(state)


def _named(params: NamedTensors) -> list[tuple[str, Any]]:
    """Returns pairs of name and value; raises if `params` is not the state or the named parameters of a model."""
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
                f"got an element of type {type(each).__name__} without a name"
            )
    return named


def broadcast_packed(tensors: list[torch.Tensor], root: int) -> None:
    """Broadcasts all tensors as one sequence of bytes, because each broadcast costs a round trip.

    Skips empty tensors.
    """
    packed = _packed(tensors)
    exchange.broadcast_bytes(process.current(), packed, root)
    _unpack(packed, tensors)


def _packed(tensors: list[torch.Tensor]) -> numpy.ndarray:
    parts = [bytes_of(tensor) for tensor in tensors if tensor.numel() > 0]
    return numpy.concatenate(parts or [numpy.empty(0, numpy.uint8)])


def _unpack(packed: numpy.ndarray, tensors: list[torch.Tensor]) -> None:
    """Overwrites `tensors` with the bytes that _packed() made of tensors of the same shapes and types."""
    start = 0
    for tensor in [each for each in tensors if each.numel() > 0]:
        size = tensor.numel() * tensor.element_size()
        source = torch.from_numpy(packed[start : start + size].copy()).view(tensor.dtype).reshape(tensor.shape)
        tensor.copy_(source)
        start += size
