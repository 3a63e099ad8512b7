"""Lets an optimizer step for parts of its parameters, as sparse communication does.

Source: "SGD Update Step" of Algorithm 1 in GradientFlow §3.2, with w = w - u in place of the printed w + u.

A step changes only the elements in some *runs* of each parameter, and only their part of the optimizer's state. An
optimizer that updates each element by its own gradient and state, as all of torch.optim except LBFGS and Adafactor do,
needs no change for that: it steps for the runs as if each were a parameter. LARS scales the gradients of whole
parameters before (docs/large-batches.md).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from gleaner.errors import InvalidArgumentError
from gleaner.torch.chunks import Runs
from gleaner.torch.lars import scaled
from gleaner.torch.parts import check_divisible, part_of
from gleaner.torch.sparsity import Sparsity


def flat(tensor: torch.Tensor) -> torch.Tensor:
    """Returns all elements of a tensor without gaps as a view of one dimension, in the order of memory."""
    tensor = tensor.detach()
    return tensor.as_strided((tensor.numel(),), (1,), tensor.storage_offset())


def check_steps_in_runs(optimizer: torch.optim.Optimizer, sparsity: Sparsity) -> None:
    """Raises InvalidArgumentError if `optimizer` is known not to step in runs, or has no momentum for `sparsity`."""
    check_divisible(optimizer, "sparsity does")
    if type(optimizer).__name__ == "Adafactor":
        raise InvalidArgumentError(
            "sparsity does not support Adafactor, whose state has no entry for each element; use another optimizer"
        )
    if sparsity.momentum is None and any("momentum" not in group for group in optimizer.param_groups):
        raise InvalidArgumentError(
            f"{type(optimizer).__name__} has no momentum, by which gradients that are not sent fade: pass it, as in "
            "Sparsity(0.85, warm_up_steps=500, momentum=0.9)"
        )


def step_in_runs(
    optimizer: torch.optim.Optimizer,
    runs_of: Mapping[torch.nn.Parameter, Runs],
    arguments: Sequence[Any],
    named: Mapping[str, Any],
) -> Any:
    """Steps for the runs of parameters; for parameters that `runs_of` lacks as usual.

    Args:
        optimizer: The optimizer, not wrapped. Gradients of parameters in `runs_of` have their memory format.
        runs_of: Runs by parameter. A parameter without runs keeps its value and state.
        arguments: Positional arguments for step(), without a closure.
        named: Named arguments for step().

    Returns:
        The result of step().
    """
    with scaled(optimizer) as kind:
        part = part_of(optimizer, {}, ())
        part.state = defaultdict(dict)
        views: list[_View] = []
        for group, empty in zip(optimizer.param_groups, part.param_groups):
            members: list[torch.Tensor] = empty["params"]
            for parameter in group["params"]:
                whole = [(0, parameter.numel())]
                if parameter.grad is None or parameter.numel() == 0 or runs_of.get(parameter, whole) == whole:
                    members.append(parameter)
                    if parameter in optimizer.state:
                        part.state[parameter] = optimizer.state[parameter]
                    continue
                view = _View(optimizer, parameter, runs_of[parameter])
                views.append(view)
                members += view.enter(part)
        result = kind.step(part, *arguments, **named)
        for group, stepped in zip(optimizer.param_groups, part.param_groups):
            group.update({name: value for name, value in stepped.items() if name != "params"})
        for view in views:
            view.leave(part)
        viewed = {piece for view in views for piece in view.pieces}
        for parameter, state in part.state.items():
            if parameter not in viewed:
                optimizer.state[parameter] = state
        return result


class _View:
    """A parameter as one tensor for each of its runs, with their part of the optimizer's state."""

    def __init__(self, optimizer: torch.optim.Optimizer, parameter: torch.nn.Parameter, runs: Runs) -> None:
        self._optimizer, self._parameter, self._runs = optimizer, parameter, runs
        self.pieces: list[torch.Tensor] = []

    def enter(self, part: torch.optim.Optimizer) -> list[torch.Tensor]:
        """Makes the tensors of the runs, gives them their gradients and states, and returns them."""
        values, gradients = flat(self._parameter), flat(self._parameter.grad)
        state = self._optimizer.state.get(self._parameter, {})
        for name, value in state.items():
            if self._is_elementwise(value) and value.stride() != self._parameter.stride():
                state[name] = self._like_parameter().copy_(value)
        for begin, end in self._runs:
            piece = values[begin:end]
            piece.grad = gradients[begin:end]
            self.pieces.append(piece)
            if state:
                part.state[piece] = {name: self._part_of(value, begin, end) for name, value in state.items()}
        return self.pieces

    def leave(self, part: torch.optim.Optimizer) -> None:
        """Writes the state of the runs back to the optimizer."""
        state = self._optimizer.state[self._parameter] if any(part.state.get(each) for each in self.pieces) else {}
        for piece, (begin, end) in zip(self.pieces, self._runs):
            for name, value in part.state.get(piece, {}).items():
                if not isinstance(value, torch.Tensor) or value.shape != piece.shape:
                    state[name] = value
                    continue
                if not self._is_elementwise(state.get(name)):
                    state[name] = self._like_parameter().zero_()
                target = flat(state[name])[begin:end]
                if target.data_ptr() != value.data_ptr():
                    target.copy_(value)

    def _is_elementwise(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor) and value.shape == self._parameter.shape

    def _like_parameter(self) -> torch.Tensor:
        return torch.empty_like(self._parameter.detach(), memory_format=torch.preserve_format)

    def _part_of(self, value: Any, begin: int, end: int) -> Any:
        if self._is_elementwise(value):
            return flat(value)[begin:end]
        return value.clone() if isinstance(value, torch.Tensor) else value  # such as Adam's number of steps
