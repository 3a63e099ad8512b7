"""Lets an optimizer step for a part of its parameters at a time, as CrossBarrier does when averages arrive."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Optional

import torch

from gleaner.errors import FailedPreconditionError
from gleaner.torch.chunks import Runs
from gleaner.torch.parts import Places, part_of
from gleaner.torch.sparse_step import step_in_runs


class Pieces:
    """One step of an optimizer that is made piece by piece, each piece for some of its parameters. Not thread safe.

    All pieces begin with the hyperparameters and attributes that the optimizer had when Pieces was constructed. A step
    may write to parameter groups (`group["step"] += 1`), attributes, and entries of `state` that belong to no
    parameter. Every piece must write the same values, which the optimizer then gets once.

    Args:
        optimizer: The optimizer, which check_divisible() has checked.
        places: Result of places_of().
        arguments: Positional arguments for step().
        named: Named arguments for step().
    """

    def __init__(
        self, optimizer: torch.optim.Optimizer, places: Places, arguments: Sequence[Any], named: Mapping[str, Any]
    ) -> None:
        self._optimizer, self._places, self._arguments, self._named = optimizer, places, arguments, named
        self._groups = [_copies(group, without=("params",)) for group in optimizer.param_groups]
        self._attributes = {
            name: copy.copy(value) if type(value) in _CONTAINERS else value
            for name, value in vars(optimizer).items()
            if name not in _SHARED
        }
        self._versions = {
            name: value._version for name, value in self._attributes.items() if isinstance(value, torch.Tensor)
        }
        self._common = _copies(_common(optimizer.state))
        self._written: dict[tuple[str, Any], Any] = {}

    def step(
        self, parameters: Collection[torch.nn.Parameter], runs: Optional[Mapping[torch.nn.Parameter, Runs]] = None
    ) -> None:
        """Makes the step for `parameters`, or for their `runs`.

        Raises:
            FailedPreconditionError: The step writes other values than an earlier piece to groups, attributes or the
                common state, or it changes an attribute's tensor in place.
        """
        whole = self._optimizer
        groups = [_copies(group) for group in self._groups]
        part = part_of(whole, self._places, parameters, groups, self._attributes)
        part.state = defaultdict(dict, {each: whole.state[each] for each in parameters if each in whole.state})
        part.state.update(_copies(self._common))
        if runs is None:
            part.step(*self._arguments, **self._named)
        else:
            step_in_runs(part, runs, self._arguments, self._named)
        whole.state.update({key: value for key, value in part.state.items() if isinstance(key, torch.Tensor)})
        for number, (before, group) in enumerate(zip(self._groups, part.param_groups)):
            del group["params"]
            self._keep(f"parameter group {number}", before, group, whole.param_groups[number])
        self._keep("the state", self._common, _common(part.state), whole.state)
        attributes = {name: value for name, value in vars(part).items() if name not in _SHARED}
        self._keep("the attributes", self._attributes, attributes, vars(whole))
        for name, version in self._versions.items():
            if self._attributes[name]._version != version:
                raise self._refusal(f"changes the tensor {name} in place")

    def _keep(self, where: str, before: Mapping[Any, Any], after: Mapping[Any, Any], target: Any) -> None:
        """Writes to `target` the values that this piece changed, unless an earlier piece has written them."""
        for key, value in after.items():
            if key in before and _same(value, before[key]):
                continue
            if (where, key) not in self._written:
                self._written[where, key] = target[key] = value
            elif not _same(value, self._written[where, key]):
                raise self._refusal(f"writes another value to {key!r} in {where} for each part")

    def _refusal(self, why: str) -> FailedPreconditionError:
        return FailedPreconditionError(
            f"CrossBarrier steps for a part of the parameters at a time, and {type(self._optimizer).__name__}.step() "
            f"{why}: use DistributedOptimizer"
        )


_SHARED = ("param_groups", "state", "step")  # attributes that each piece has of its own, or has not
_CONTAINERS = (list, dict, set)


def _common(state: Mapping[Any, Any]) -> dict[Any, Any]:
    """Returns the entries of an optimizer's state that belong to no parameter."""
    return {key: value for key, value in state.items() if not isinstance(key, torch.Tensor)}


def _copies(values: Mapping[Any, Any], without: Sequence[str] = ()) -> dict[Any, Any]:
    """Returns the values, with copies of those that a step may change in place."""
    return {key: _copied(value) for key, value in values.items() if key not in without}


def _copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter):
        return value.detach().clone()
    return copy.copy(value) if type(value) in _CONTAINERS else value


def _same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a.shape == b.shape and a.dtype == b.dtype and torch.equal(a, b)
    try:
        return type(a) is type(b) and bool(a == b)
    except (RuntimeError, TypeError, ValueError):  # as for arrays of numpy
        return False
