"""Copies models, optimizers and objects between ranks."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from typing import Any, Optional, Union

import torch

from gleaner.errors import InvalidArgumentError
from gleaner.horovod.torch.differentiable import allgather, broadcast_
from gleaner.horovod.torch.layer import present
from gleaner.horovod.torch.operations import broadcast_async_, synchronize
from gleaner.horovod.torch.process_sets import ProcessSet, global_process_set
from gleaner.torch.tensors import pickled
from gleaner.torch.wrapper import parameters_of


def broadcast_parameters(
    params: Union[Mapping[str, Any], Iterable[Any]],
    root_rank: int,
    process_set: ProcessSet = global_process_set,
) -> None:
    """Overwrites tensors with those of rank `root_rank`. Collective; blocks.

    Args:
        params: model.state_dict(), model.named_parameters() or model.parameters().
        root_rank: Rank of the job whose tensors are copied.
        process_set: The ranks.

    Raises:
        InvalidArgumentError: `params` is something else.
        GleanerError: As in synchronize().
    """
    if isinstance(params, Mapping):
        params = sorted(params.items())
    if isinstance(params, torch.Tensor) or not isinstance(params, Iterable):
        raise InvalidArgumentError(f"params: expected a dict or a list of tensors, not {type(params).__name__}")
    named = [each if isinstance(each, tuple) else (None, each) for each in params]
    tensors = [(name, tensor) for name, tensor in named if isinstance(tensor, torch.Tensor)]
    handles = [broadcast_async_(tensor, root_rank, name, process_set) for name, tensor in tensors]
    for handle in handles:
        synchronize(handle)


def broadcast_optimizer_state(
    optimizer: torch.optim.Optimizer, root_rank: int, model: Optional[torch.nn.Module] = None
) -> None:
    """Copies the state and the hyperparameters of rank `root_rank`'s optimizer to all ranks. Collective; blocks.

    As in Horovod, parameters of an optimizer without a state get gradients of zeros.

    Args:
        optimizer: The same optimizer on all ranks; ranks other than the root need not have a state.
        root_rank: Rank whose state is copied.
        model: Ignored.

    Raises:
        InvalidArgumentError: The optimizers are of different classes.
        GleanerError: As in synchronize().
    """
    ours = type(optimizer).__name__
    if not optimizer.state:
        for parameter in parameters_of(optimizer):
            if parameter.requires_grad and parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
    is_root = present().rank == root_rank
    theirs, state = broadcast_object((ours, optimizer.state_dict()) if is_root else None, root_rank, "optimizer state")
    if ours != theirs:
        raise InvalidArgumentError(f"the optimizer of this rank is {ours}, and that of rank {root_rank} is {theirs}")
    if not is_root:
        optimizer.load_state_dict(state)


def broadcast_object(
    obj: Any, root_rank: int = 0, name: Optional[str] = None, process_set: ProcessSet = global_process_set
) -> Any:
    """Returns the object of rank `root_rank`, by pickle. Collective; blocks. Other ranks' objects are ignored."""
    is_root = present().rank == root_rank
    data = _bytes(obj) if is_root else torch.empty(0, dtype=torch.uint8)
    size = broadcast_(torch.tensor([len(data)]), root_rank, _named(name, "size"), process_set)
    data = data if is_root else torch.empty(int(size), dtype=torch.uint8)
    broadcast_(data, root_rank, _named(name, "object"), process_set)
    return obj if is_root else _object(data)


def allgather_object(obj: Any, name: Optional[str] = None, process_set: ProcessSet = global_process_set) -> list[Any]:
    """Returns the objects of all ranks in their order, by pickle. Collective; blocks."""
    data = _bytes(obj)
    sizes = allgather(torch.tensor([len(data)]), _named(name, "size"), process_set).tolist()
    return [_object(part) for part in allgather(data, _named(name, "object"), process_set).split(sizes)]


def _named(name: Optional[str], part: str) -> Optional[str]:
    return None if name is None else f"{name}.{part}"


def _bytes(value: Any) -> torch.Tensor:
    return torch.frombuffer(bytearray(pickled(value)), dtype=torch.uint8)


def _object(data: torch.Tensor) -> Any:
    return pickle.loads(data.numpy().tobytes())
