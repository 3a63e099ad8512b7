"""CrossBarrier: step() does not wait; each module of the next forward pass waits for its own parameters.

Gradients of the last layers are therefore averaged while the first layers compute the next forward pass. A step takes
about as long as the longer of computation and communication, instead of the sum of both. Sources: ByteScheduler §3
("crossing global barriers"), BytePS §6.
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
    """The base class that CrossBarrier puts before the user's optimizer class. Not thread safe.

    A parameter is overdue from step() until the wrapped optimizer has updated it with its average. update_overdue()
    waits for the average and makes the update, on the caller's thread: before the forward pass of the module that holds
    the parameter, or when the program asks for parameters in another way.
    """

    _group_of: dict[torch.nn.Parameter, int]
    _groups: list[dict[str, Any]]  # copies that step() made, because schedulers change the optimizer's own groups
    _clear: Optional[Callable[[], None]]  # the zero_grad() call to make for overdue parameters after their update

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """Ends the step without waiting for averages. Collective: every rank makes the same steps.

        update_overdue() makes the updates later, with the hyperparameters that the optimizer has at this call. If the
        gradients are averages already (after synchronize()), or within skip_synchronize(), step() updates the
        parameters at once.

        Args:
            closure: Must be None.

        Returns:
            None, or the result of the wrapped optimizer's step() if that is called at once.

        Raises:
            InvalidArgumentError: `closure` is not None.
            FailedPreconditionError: Parameters were added or replaced after wrapping; backward() is still running or
                has failed; or a gradient was changed while it was in flight.
            GleanerError: The session has failed; see gleaner.errors.
        """
        if closure is not None:
            raise InvalidArgumentError(
                "CrossBarrier does not support closures, because a closure needs all updates at once; use "
                "DistributedOptimizer"
            )
        self.check_parameters()
        self.update_overdue()
        self._clear = None
        if self._gradients.averaged or not self._should_synchronize:
            return super().step()
        self._groups = [dict(group) for group in self.param_groups]
        self._gradients.postpone()
        self.note_step()
        return None

    step.hooked = True  # for the reason that AveragesGradients.step gives

    def synchronize(self) -> None:
        """Waits until every parameter of the last step is updated, and until every new gradient is an average.

        Raises:
            FailedPreconditionError: backward() is still running or has failed, a gradient was changed while it was in
                flight, or ranks are at different steps.
            GleanerError: The session has failed; see gleaner.errors.
        """
        self.update_overdue()
        if self._gradients.unaveraged:
            super().synchronize()

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        """Clears gradients; takes the arguments of torch.optim. Overdue parameters keep theirs until their update.

        Raises:
            FailedPreconditionError: Gradients of this step are in flight, or backward() is still running or has failed.
        """
        on_time = [each for each in self._group_of if each not in self._gradients.overdue]
        with self._only(self.param_groups, on_time):
            super().zero_grad(*args, **kwargs)
        clear = super(AveragesGradients, self).zero_grad
        self._clear = lambda: clear(*args, **kwargs)

    def state_dict(self) -> dict[str, Any]:
        """Updates all overdue parameters, then returns the state of the wrapped optimizer.

        Raises:
            GleanerError: The errors of step().
        """
        self.update_overdue()
        return super().state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Updates all overdue parameters, then loads a state into the wrapped optimizer.

        Args:
            state_dict: Result of state_dict() of the same kind of optimizer.

        Raises:
            GleanerError: The errors of step().
        """
        self.update_overdue()
        super().load_state_dict(state_dict)

    def update_overdue(self, parameters: Optional[Iterable[torch.nn.Parameter]] = None) -> None:
        """Waits for the averages of overdue parameters and updates these parameters.

        Args:
            parameters: Updates only these parameters, if they are overdue. None: updates all overdue parameters.

        Raises:
            FailedPreconditionError: A gradient was changed while it was in flight, or ranks are at different steps.
            GleanerError: The session has failed; see gleaner.errors.
        """
        all_overdue = self._gradients.overdue
        overdue = list(all_overdue) if parameters is None else [each for each in parameters if each in all_overdue]
        if not overdue:
            return
        self._gradients.finish(overdue)
        with self._only(self._groups, overdue):
            super(AveragesGradients, self).step()
            if self._clear is not None:
                self._clear()

    @contextmanager
    def _only(self, groups: list[dict[str, Any]], parameters: Iterable[torch.nn.Parameter]) -> Iterator[None]:
        """Limits the optimizer to `parameters`, with the hyperparameters in `groups`, within this context."""
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
    """Wraps an optimizer like DistributedOptimizer, but step() returns before the averages have arrived.

    When a module of `model` is called, it waits for the averages of its own parameters and updates these parameters.
    Parameters have the same bits as with DistributedOptimizer. Until its module is called a parameter can be one step
    old: read parameters through model.state_dict(), or after optimizer.synchronize(). If a module uses the parameters
    of another module without calling that module, backward() raises an error.

    All ranks must construct the same optimizers in the same order. The constructor does not wait for other ranks. Use
    the optimizer from one thread.

    Args:
        optimizer: An optimizer that updates each parameter by its own gradient alone, as all of torch.optim except
            LBFGS do.
        model: The model. Its parameters must include all parameters of `optimizer`. Parameters that require no gradient
            at this call must stay frozen.
        backward_passes_per_step: Number of backward passes whose gradients are added before each step.
        prioritize: True: gradients that the next forward pass needs first are sent first. False: in the order in which
            backward() computes them.
        name: Prefix of the names of tensors; None: optimizer.0, optimizer.1, … in the order of construction.

    Returns:
        An optimizer of the class of `optimizer`, with its state and hyperparameters; use it in place of `optimizer`.

    Raises:
        InvalidArgumentError: `optimizer` is LBFGS or was wrapped before, some of its parameters are not in `model`, or
            `backward_passes_per_step` is below 1.
        TypeError: `optimizer` is not an optimizer, `model` is not a module, or a parameter that requires a gradient is
            not a dense CPU tensor of a type that can be summed.
        GleanerError: There is no session, or it has failed; see gleaner.errors.
    """
    if isinstance(optimizer, torch.optim.LBFGS):
        raise InvalidArgumentError(
            "CrossBarrier does not support LBFGS, which needs all gradients at once; use DistributedOptimizer"
        )
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"CrossBarrier() takes the model, a torch.nn.Module, not {type(model).__name__}")
    crossing = with_gradients(
        UpdatesInForward, optimizer, model.named_parameters(), backward_passes_per_step, prioritize, "forward", name
    )
    crossing._group_of = {
        parameter: number for number, group in enumerate(optimizer.param_groups) for parameter in group["params"]
    }
    crossing._groups, crossing._clear = [], None
    for module in model.modules():
        module.register_forward_pre_hook(_UpdateBeforeForward(crossing))
        module.__dict__["__getstate__"] = _UpdatedState(crossing, module)
    model._register_state_dict_hook(_UpdateAll(crossing))  # the tensors of state_dict() share memory with parameters
    return crossing


class _UpdatingHook:
    """Base class of the hooks that CrossBarrier adds to modules."""

    def __init__(self, optimizer: UpdatesInForward) -> None:
        self.optimizer = optimizer


class _UpdateAll(_UpdatingHook):
    """Updates all overdue parameters before model.state_dict() returns."""

    def __call__(self, *_: Any) -> None:
        self.optimizer.update_overdue()


class _UpdateBeforeForward(_UpdatingHook):
    """Updates the overdue parameters of a module before its forward pass."""

    def __call__(self, module: torch.nn.Module, _: Any) -> None:
        if not self.optimizer._gradients.overdue:
            return
        if not torch.is_grad_enabled():  # inference may use parameters without calling their modules
            self.optimizer.update_overdue()
            return
        # MultiheadAttention uses the parameters of a module that it does not call.
        self.optimizer.update_overdue(module.parameters(recurse=isinstance(module, torch.nn.MultiheadAttention)))


class _UpdatedState(_UpdatingHook):
    """Replaces a module's __getstate__, so that its copies have updated parameters and no hooks of this file."""

    def __init__(self, optimizer: UpdatesInForward, module: torch.nn.Module) -> None:
        super().__init__(optimizer)
        self._module = weakref.ref(module)

    def __call__(self) -> Any:
        self.optimizer.update_overdue()
        module = self._module()
        of_class = getattr(type(module), "__getstate__", None)  # every class has one from Python 3.11 on
        state = module.__dict__ if of_class is None else of_class(module)
        if not isinstance(state, dict):
            return state
        others = {name: value for name, value in state.items() if name != "__getstate__"}
        for name in ("_forward_pre_hooks", "_state_dict_hooks"):
            hooks = others.get(name, {})
            others[name] = OrderedDict(
                (key, hook) for key, hook in hooks.items() if not isinstance(hook, _UpdatingHook)
            )
        return others
