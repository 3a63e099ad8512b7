"""CrossBarrier: step() does not wait; each layer of the next forward pass waits for its own parameters.

So the sums of the back layers travel while the front layers compute, and a step takes about the longer of computation
and communication instead of their sum. Source: ByteScheduler §3 ("crossing global barriers"), BytePS §6.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Callable, Optional

import torch

from gleaner.errors import InvalidArgumentError
from gleaner.torch.optimizer import AveragesGradients, with_gradients


class UpdatesInForward(AveragesGradients):
    """What CrossBarrier mixes in before the user's own optimizer class.

    A parameter is late from step() until its average is there and the wrapped optimizer has updated it, which happens
    on the caller's thread: before the forward of the module that holds it, or when anything else asks for it.
    """

    _group_of: dict[torch.nn.Parameter, int]
    _groups: list[dict[str, Any]]  # as they were when step() was called: schedulers change the optimizer's own
    _clear: Optional[Callable[[], None]]  # the zero_grad() that late gradients have yet to get

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """Returns when all gradients are on their way; their averages are used when forward needs the parameters."""
        if closure is not None:
            raise InvalidArgumentError(
                "CrossBarrier takes no closure, which needs all updates at once; use DistributedOptimizer"
            )
        self.check_parameters()
        self.settle()
        self._clear = None
        if self._gradients.averaged or not self._should_synchronize:
            return super().step()
        self._groups = [dict(group) for group in self.param_groups]
        self._gradients.postpone()
        self.note_step()
        return None

    step.hooked = True  # as AveragesGradients.step

    def synchronize(self) -> None:
        """After step(): waits until every parameter is updated. Before it: until every gradient is an average."""
        self.settle()
        if self._gradients.unaveraged:
            super().synchronize()

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        """Clears gradients; those that are late are cleared once they are used."""
        on_time = [each for each in self._group_of if each not in self._gradients.overdue]
        with self._only(self.param_groups, on_time):
            super().zero_grad(*args, **kwargs)
        clear = super(AveragesGradients, self).zero_grad
        self._clear = lambda: clear(*args, **kwargs)

    def state_dict(self) -> dict[str, Any]:
        self.settle()
        return super().state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.settle()
        super().load_state_dict(state_dict)

    def settle(self, parameters: Optional[Iterable[torch.nn.Parameter]] = None) -> None:
        """Waits for the averages of those of `parameters`, by default of all, that are late, and updates them."""
        overdue = self._gradients.overdue
        late = list(overdue) if parameters is None else [each for each in parameters if each in overdue]
        if not late:
            return
        self._gradients.finish(late)
        with self._only(self._groups, late):
            super(AveragesGradients, self).step()
            if self._clear is not None:
                self._clear()

    @contextmanager
    def _only(self, groups: list[dict[str, Any]], parameters: Iterable[torch.nn.Parameter]) -> Iterator[None]:
        """Within it the optimizer has `groups`, and in them no parameters but these."""
        chosen: dict[int, list[torch.nn.Parameter]] = {}
        for parameter in parameters:
            if parameter in self._group_of:
                chosen.setdefault(self._group_of[parameter], []).append(parameter)
        kept = self.param_groups
        self.param_groups = [{**groups[number], "params": members} for number, members in chosen.items()]
        try:
            yield
        finally:
            self.param_groups = kept


def CrossBarrier(
    optimizer: torch.optim.Optimizer,
    model: torch.nn.Module,
    backward_passes_per_step: int = 1,
    prioritize: bool = True,
    name: Optional[str] = None,
) -> torch.optim.Optimizer:
    """A DistributedOptimizer whose step() returns before the averages are there.

    Every module of `model` waits, when it is called, for the parameters it holds itself. The parameters are the same,
    bit for bit, as with DistributedOptimizer. Read them through model.state_dict(), or after synchronize(): until
    then some are a step old. For optimizers that update each parameter by its own gradient alone: all of
    torch.optim but LBFGS. A module that uses parameters of one it does not call is told so by an error in backward.
    """
    if isinstance(optimizer, torch.optim.LBFGS):
        raise InvalidArgumentError("LBFGS needs all gradients at once; use DistributedOptimizer")
    crossing = with_gradients(
        UpdatesInForward, optimizer, model.named_parameters(), backward_passes_per_step, prioritize, "forward", name
    )
    crossing._group_of = {
        parameter: number for number, group in enumerate(optimizer.param_groups) for parameter in group["params"]
    }
    crossing._groups, crossing._clear = [], None
    for module in model.modules():
        module.register_forward_pre_hook(_SettleBefore(crossing))
        module.__dict__["__getstate__"] = _SettledState(crossing, module)
    model._register_state_dict_hook(_SettleAll(crossing))  # its tensors share memory with the parameters
    return crossing


class _Settles:
    """Hooks of ours on modules."""

    def __init__(self, optimizer: UpdatesInForward) -> None:
        self.optimizer = optimizer


class _SettleAll(_Settles):
    def __call__(self, *_: Any) -> None:
        self.optimizer.settle()


class _SettleBefore(_Settles):
    def __call__(self, module: torch.nn.Module, _: Any) -> None:
        if not self.optimizer._gradients.overdue:
            return
        if not torch.is_grad_enabled():  # inference takes shortcuts past modules
            self.optimizer.settle()
            return
        # MultiheadAttention uses the parameters of a module that it does not call.
        self.optimizer.settle(module.parameters(recurse=isinstance(module, torch.nn.MultiheadAttention)))


class _SettledState(_Settles):
    """A module's __getstate__: copies and pickles of it have parameters that are up to date, and none of our hooks."""

    def __init__(self, optimizer: UpdatesInForward, module: torch.nn.Module) -> None:
        super().__init__(optimizer)
        self._module = weakref.ref(module)

    def __call__(self) -> Any:
        self.optimizer.settle()
        module = self._module()
        of_class = getattr(type(module), "__getstate__", None)  # every class has one from Python 3.11 on
        state = module.__dict__ if of_class is None else of_class(module)
        if not isinstance(state, dict):
            return state
        others = {name: value for name, value in state.items() if name != "__getstate__"}
        for name in ("_forward_pre_hooks", "_state_dict_hooks"):
            hooks = others.get(name, {})
            others[name] = OrderedDict((key, hook) for key, hook in hooks.items() if not isinstance(hook, _Settles))
        return others
