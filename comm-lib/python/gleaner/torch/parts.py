"""Parts of an optimizer: optimizers of the same class that have some of its parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Optional

import torch

from gleaner.errors import InvalidArgumentError

Places = Mapping[torch.nn.Parameter, int]  # the number of each parameter's group


def places_of(optimizer: torch.optim.Optimizer) -> Places:
    return {parameter: number for number, group in enumerate(optimizer.param_groups) for parameter in group["params"]}


def part_of(
    optimizer: torch.optim.Optimizer,
    places: Places,
    parameters: Iterable[torch.nn.Parameter],
    groups: Optional[list[dict[str, Any]]] = None,
    attributes: Optional[Mapping[str, Any]] = None,
) -> torch.optim.Optimizer:
    """Returns an optimizer of the same class that has only `parameters`.

    It has as many parameter groups as `optimizer`, of which some may be empty. `groups` are hyperparameters for these
    groups, and `attributes` all other attributes; None: those of `optimizer`.
    """
    part = object.__new__(type(optimizer))
    part.__dict__.update(vars(optimizer) if attributes is None else attributes)
    part.__dict__.pop("step", None)  # a scheduler's wrapper, which is bound to `optimizer`
    part.param_groups = [{**group, "params": []} for group in groups or optimizer.param_groups]
    for parameter in parameters:
        if parameter in places:
            part.param_groups[places[parameter]]["params"].append(parameter)
    return part


def check_divisible(optimizer: torch.optim.Optimizer, unsupported: str = "CrossBarrier does") -> None:
    """Raises InvalidArgumentError if it is known that `optimizer` cannot step for a part of its parameters.

    The message begins with `unsupported`, and goes on with "not support".
    """
    inner = [value for value in vars(optimizer).values() if hasattr(value, "param_groups")]
    step = vars(optimizer).get("step")
    of_scheduler = hasattr(step, "_with_counter") or hasattr(step, "_wrapped_by_lr_sched")
    if isinstance(optimizer, torch.optim.LBFGS):
        why = "needs all gradients at once"
    elif inner or "param_groups" not in vars(optimizer):
        why = "contains another optimizer" if not inner else f"contains another optimizer, {type(inner[0]).__name__}"
    elif step is not None and not of_scheduler:
        why = "had its step() replaced by another function"
    else:
        return
    raise InvalidArgumentError(
        f"{unsupported} not support this {type(optimizer).__name__}, which {why}; use DistributedOptimizer"
    )
