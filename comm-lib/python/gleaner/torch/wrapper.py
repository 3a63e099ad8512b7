"""The base class of all wrapped optimizers, and the classes that are made for them."""

from __future__ import annotations

import contextlib
import copy
import inspect
import threading
import types
from typing import Any, Optional

import torch

from gleaner.errors import FailedPreconditionError, InvalidArgumentError
from gleaner.torch.closures import ClosureArgument


class Wrapper:
    """The base class of wrapped optimizers. A wrapped optimizer has all attributes of the user's optimizer.

    Both optimizers share one `__dict__`, with parameter groups, state and everything else that the user's class keeps.
    So schedulers that were made before wrapping keep working, and a checkpoint may be loaded into either optimizer.
    Attributes that wrapping adds are slots. step() and zero_grad() end in those of the user's optimizer.

    One thread trains: the thread that made the latest step. Other threads may call state_dict() at any time.
    """

    __slots__ = ("_closure", "_lock", "_own", "_replaced", "_trainer", "_wrapped")

    _own: torch.optim.Optimizer  # the user's optimizer
    _wrapped: frozenset[torch.nn.Parameter]  # parameters of the user's optimizer when it was wrapped
    _closure: ClosureArgument
    _lock: threading.RLock  # held while a step changes parameters and state
    _trainer: int  # identifier of the thread that trains
    _replaced: dict[str, Any]  # functions that the program has assigned in place of methods

    def check_parameters(self) -> None:
        """Raises FailedPreconditionError if parameters were added or removed since wrapping.

        Added parameters would not be averaged.
        """
        parameters = parameters_of(self)
        came = sum(each not in self._wrapped for each in parameters)
        if came == 0 and len(parameters) == len(self._wrapped):
            return
        if len(parameters) == len(self._wrapped):
            change = f"{came} of the optimizer's {len(parameters)} parameters were added after it was wrapped"
        else:
            change = f"the optimizer has {len(parameters)} parameters, and had {len(self._wrapped)} when it was wrapped"
        raise FailedPreconditionError(
            f"{change}: add all parameter groups before DistributedOptimizer() or CrossBarrier(), or wrap the "
            "optimizer again"
        )

    def note_step(self) -> None:
        """Marks a step in the user's optimizer, where schedulers that were made before wrapping look for it."""
        self._own._step_count = getattr(self._own, "_step_count", 0) + 1
        self._own._opt_called = True

    def is_trained_elsewhere(self) -> bool:
        """Returns whether another thread than the caller's trains."""
        return threading.get_ident() != self._trainer

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Returns the state of the wrapped optimizer after its last step. Any thread may call it.

        Threads that do not train get a copy: the tensors of the state itself change with the next step.
        """
        with self._lock:
            state = self._own.state_dict(*args, **kwargs)
            return copy.deepcopy(state) if self.is_trained_elsewhere() else state

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Loads a state into the wrapped optimizer. Takes the arguments of its class."""
        with self._lock:
            return self._own.load_state_dict(*args, **kwargs)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        raise FailedPreconditionError(
            "add all parameter groups before wrapping the optimizer: ranks must agree on them"
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Makes copies and pickles objects of the user's class, which do not average: a session cannot be copied."""
        with self._lock:
            state = self._own.__getstate__()
            # LARS's classes cannot be pickled by name.
            empty = getattr(self._own, "_empty", (object.__new__, (type(self._own),)))
            return (*empty, copy.deepcopy(state) if self.is_trained_elsewhere() else state)


def check_optimizer(optimizer: torch.optim.Optimizer) -> None:
    """Raises TypeError if `optimizer` is not an optimizer."""
    if isinstance(optimizer, type) or not hasattr(optimizer, "param_groups"):
        what = f"the class {optimizer.__name__}" if isinstance(optimizer, type) else type(optimizer).__name__
        raise TypeError(f"expected an optimizer, such as torch.optim.SGD(model.parameters(), lr=0.1), not {what}")


def mixed(kind: type, optimizer: torch.optim.Optimizer) -> Any:
    """Returns an optimizer whose class derives from `kind` and from the class of `optimizer`."""
    if isinstance(optimizer, Wrapper):
        raise InvalidArgumentError(
            "DistributedOptimizer() or CrossBarrier() returned this optimizer: pass the original, unwrapped optimizer"
        )
    _check_names_are_free(kind, optimizer)
    of_user = type(optimizer)
    shadowed = [name for name in _methods(kind) if hasattr(torch.optim.Optimizer, name)]
    wrapped_class = type(of_user.__name__, (kind, of_user), {name: _Method(kind, name, of_user) for name in shadowed})
    distributed = object.__new__(wrapped_class)
    distributed.__dict__ = optimizer.__dict__
    distributed._own, distributed._wrapped = optimizer, frozenset(parameters_of(optimizer))
    step = getattr(of_user, "step", None)  # not optimizer.step, which a scheduler may have replaced
    distributed._closure = ClosureArgument(optimizer.step if step is None else types.MethodType(step, optimizer))
    distributed._replaced = {}
    distributed._lock, distributed._trainer = threading.RLock(), threading.get_ident()
    return distributed


class _Method:
    """A method of a wrapped optimizer, which attributes of the user's optimizer do not hide.

    Schedulers, for example, replace step() of the optimizer that they get by another function. If they get the user's
    optimizer, the wrapped optimizer's own step() stays, and ends in theirs. A function that replaces the method of the
    wrapped optimizer is kept in its `_replaced`.
    """

    def __init__(self, kind: type, name: str, of_user: type) -> None:
        def method(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            return getattr(kind, name)(optimizer, *args, **kwargs)

        method.__name__, method.__qualname__ = name, f"{of_user.__qualname__}.{name}"
        method.__doc__ = getattr(kind, name).__doc__
        with contextlib.suppress(TypeError, ValueError):  # GradScaler looks for arguments of step()
            method.__signature__ = inspect.signature(getattr(of_user, name, getattr(kind, name)))
        method.hooked = True  # otherwise Optimizer.__setstate__ wraps step() for the profiler, as of_user's already is
        self._name, self._method = name, method

    def __get__(self, optimizer: Any, owner: Optional[type] = None) -> Any:
        if optimizer is None:
            return self._method
        return optimizer._replaced.get(self._name) or types.MethodType(self._method, optimizer)

    def __set__(self, optimizer: Any, function: Any) -> None:
        optimizer._replaced[self._name] = function

    def __delete__(self, optimizer: Any) -> None:
        if optimizer._replaced.pop(self._name, None) is None:
            raise AttributeError(self._name)


def _methods(kind: type) -> list[str]:
    """Returns the names of the public methods of a subclass of Wrapper."""
    return [name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))]


def _check_names_are_free(kind: type, optimizer: torch.optim.Optimizer) -> None:
    slots = [name for each in kind.__mro__ for name in getattr(each, "__slots__", ())]
    methods = [name for name in _methods(kind) if not hasattr(torch.optim.Optimizer, name)]
    for name in (*slots, *methods):
        if hasattr(optimizer, name):
            raise InvalidArgumentError(
                f"{type(optimizer).__name__} has an attribute {name}, as the optimizers of DistributedOptimizer() and "
                "CrossBarrier() do, so it cannot be wrapped: if it averages gradients itself, pass the optimizer in it"
            )


def parameters_of(optimizer: torch.optim.Optimizer) -> list[torch.nn.Parameter]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]
