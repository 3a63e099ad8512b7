"""An optimizer's groups and state, which the user's own optimizer and the one wrapped around it share."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def changed_in_place(optimizer: torch.optim.Optimizer) -> Iterator[None]:
    """What replaces groups or state within this context changes them in place: two optimizers may share them.

    A scheduler made before DistributedOptimizer() refers to the user's own optimizer, and is to set its learning rates.
    """
    groups, state = optimizer.param_groups, optimizer.state
    yield
    for shared, replaced in ((group, dict(new)) for group, new in zip(groups, optimizer.param_groups)):
        shared.clear()
        shared.update(replaced)
    replaced = dict(optimizer.state)
    state.clear()
    state.update(replaced)
    optimizer.param_groups, optimizer.state = groups, state
