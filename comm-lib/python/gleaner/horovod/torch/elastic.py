"""Elastic training with Horovod's names, over gleaner.torch.elastic."""

from __future__ import annotations

import functools
from typing import Any, Callable

from gleaner.horovod.torch.basics import init
from gleaner.torch import elastic
from gleaner.torch.elastic import HostsUpdatedInterrupt, ObjectState, State, TorchState


def run(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a training function as gleaner.torch.elastic.run(), and calls init() in each round."""

    @functools.wraps(function)
    def in_round(*args: Any, **kwargs: Any) -> Any:
        init()
        return function(*args, **kwargs)

    return elastic.run(in_round)


__all__ = ["HostsUpdatedInterrupt", "ObjectState", "State", "TorchState", "run"]
