"""Broadcasts with the arguments of byteps.torch. `prefix` and the name of an object have no effect.

All functions are collective and block. Every rank must call them in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Optional, Union

import torch

from gleaner.torch import broadcasts

Params = Union[Mapping[str, Any], Iterable[Union[torch.Tensor, tuple[str, torch.Tensor]]]]


def broadcast_parameters(params: Params, root_rank: int, prefix: str = "Parameter.") -> None:
    """Overwrites tensors with those of rank `root_rank`, bit for bit.

    Args:
        params: model.state_dict(), model.named_parameters(), or tensors without names, in the same order on all ranks.
            Values that are not tensors are ignored.
        root_rank: Rank whose tensors are copied; the same on all ranks.
        prefix: Has no effect.

    Raises:
        TypeError: As in gleaner.torch.broadcast_parameters().
        GleanerError: As in gleaner.torch.broadcast_parameters().
    """
    if isinstance(params, Mapping):
        named: Any = dict(sorted(params.items()))
    else:
        named = [(f"{place}", each) if isinstance(each, torch.Tensor) else each for place, each in enumerate(params)]
    broadcasts.broadcast_parameters(named, root_rank)


def broadcast_optimizer_state(optimizer: torch.optim.Optimizer, root_rank: int, prefix: str = "Parameter.") -> None:
    """Copies the optimizer state of rank `root_rank` to all ranks.

    Args:
        optimizer: As in gleaner.torch.broadcast_optimizer_state().
        root_rank: Rank whose state is copied; the same on all ranks.
        prefix: Has no effect.

    Raises:
        GleanerError: As in gleaner.torch.broadcast_optimizer_state().
    """
    broadcasts.broadcast_optimizer_state(optimizer, root_rank)


def broadcast_object(obj: Any, root_rank: int = 0, name: Optional[str] = None) -> Any:
    """Returns the object of rank `root_rank`, copied with pickle.

    Args:
        obj: As in gleaner.torch.broadcast_object().
        root_rank: Rank whose object is copied; the same on all ranks.
        name: Has no effect.

    Raises:
        GleanerError: As in gleaner.torch.broadcast_object().
    """
    return broadcasts.broadcast_object(obj, root_rank)
