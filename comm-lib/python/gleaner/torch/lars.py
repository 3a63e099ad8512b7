"""LARS, layer-wise adaptive rate scaling: lets SGD train with large batches.

    optimizer = gln.LARS(torch.optim.SGD(model.parameters(), lr=2.0, momentum=0.9, weight_decay=1e-4))
    optimizer = gln.DistributedOptimizer(optimizer, model.named_parameters())

Before the optimizer steps, LARS replaces the gradient g of each parameter w, whose weight decay is β, by

    ratio · (g + β·w)   with   ratio = trust_coefficient · ‖w‖ / (‖g‖ + β·‖w‖ + eps)

Source: You et al. 2017, "Large Batch Training of Convolutional Networks", algorithm 1, where η is trust_coefficient and
there is no eps. There the learning rate multiplies the gradient before momentum is added, and in PyTorch's SGD
afterwards; both are the same while the rate is constant. GradientFlow §4.2 trains with LARS.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import types
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Callable, Optional

import torch

from gleaner.errors import InvalidArgumentError
from gleaner.torch.closures import ClosureArgument
from gleaner.torch.trust import gradients_are_dense, scaled_gradients
from gleaner.torch.wrapper import Wrapper, check_optimizer

# Optimizers that divide a gradient by a measure of its own size, so that they cancel a factor.
_INVARIANT = (
    "Adadelta", "Adafactor", "Adagrad", "Adam", "Adamax", "AdamW", "Muon", "NAdam", "RAdam", "RMSprop", "Rprop",
    "SparseAdam",
)  # fmt: skip


def LARS(
    optimizer: torch.optim.Optimizer,
    trust_coefficient: float = 0.001,
    eps: float = 1e-8,
    clip: bool = False,
) -> torch.optim.Optimizer:
    """Makes an optimizer scale the gradient of each parameter by the ratio of the module's equation.

    The optimizer itself changes: its class becomes a subclass of its class. Wrap the result by DistributedOptimizer()
    or CrossBarrier(), which then give LARS the averages. step() takes the weight decay of each parameter group into the
    gradients, and hides it from the optimizer. Gradients have their own values again after step(), which needs memory
    for a second copy of them while it runs.

    Parameters of at most one dimension (biases, and the scales and shifts of norms) keep their rate. They begin with
    zeros or ones, so the ratio of their norms says nothing about the size of a useful step: a bias of norm near zero
    would hardly move. A parameter group with `"lars": False` excludes all of its parameters, and one with
    `"lars": True` includes all. Groups may also have values of their own of `lars_trust_coefficient`, `lars_eps` and
    `lars_clip`. These are saved with the optimizer's state, as the learning rate is.

    The ratio is 1 if the norm of the parameter or of the gradient is zero, infinite or NaN. So a gradient with such
    values reaches the optimizer as without LARS; GradScaler skips its step before. Norms of float16 and bfloat16 are
    computed in float32, and scaled gradients are rounded once. Each rank must have whole parameters.

    The result is used as the optimizer was: from one thread, with closures, schedulers, GradScaler and checkpoints.

    Args:
        optimizer: The optimizer, such as torch.optim.SGD. One whose steps do not depend on a factor of the gradient, as
            Adam, is refused, and so is LBFGS.
        trust_coefficient: The factor η of the equation, above 0.
        eps: The term eps of the equation, at least 0, in the unit of the gradients' norms.
        clip: True: limits ratio · lr to lr, so that LARS makes no rate larger than the optimizer's: ratio becomes
            min(ratio / lr, 1).

    Returns:
        `optimizer`.

    Raises:
        InvalidArgumentError: `optimizer` is of a refused kind, was wrapped by LARS(), DistributedOptimizer() or
            CrossBarrier() before, or had its step() replaced; or a number is out of range.
        TypeError: `optimizer` is not an optimizer, or an argument or the `lars` of a group has another type.
    """
    check_optimizer(optimizer)
    _check_kind(optimizer)
    settings = {"lars": None, "lars_trust_coefficient": trust_coefficient, "lars_eps": eps, "lars_clip": clip}
    for group in ({}, *optimizer.param_groups):
        _check_settings({**settings, **group})
    defaults = vars(optimizer).setdefault("defaults", {})  # optimizers of others may have none
    for group in (defaults, *optimizer.param_groups):
        for name, value in settings.items():
            group.setdefault(name, value)
    counted = vars(optimizer).pop("step", None)
    optimizer.__class__ = _class_of(type(optimizer))
    if counted is not None:
        optimizer.step = _counting_step(optimizer)
    return optimizer


class ScalesGradients:
    """The base class that LARS puts before the user's optimizer class.

    It adds no attributes to the optimizer but `step`, so that CrossBarrier can step for a part of the parameters.
    """

    _empty: tuple[Callable[..., Any], tuple[Any, ...]]  # a function and its arguments, for pickle: makes an object
    _of_user: type[torch.optim.Optimizer]

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Makes copies and pickles that construct the class again, which has no name in a module."""
        return (*self._empty, self.__getstate__())


class _ScaledStep:
    """One step of an optimizer: scaled gradients replace its own until undo().

    Args:
        optimizer: The optimizer, whose parameter groups lose their weight decay until undo().
    """

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._optimizer = optimizer
        self._gradients: list[tuple[torch.nn.Parameter, torch.Tensor]] = []
        self._decays: list[tuple[dict[str, Any], Any]] = []

    def scale(self) -> None:
        gradients_are_dense(self._optimizer)
        for group in self._optimizer.param_groups:
            settings = {**self._optimizer.defaults, **group}
            for parameter, gradient in scaled_gradients(group["params"], settings):
                self._gradients.append((parameter, parameter.grad))
                parameter.grad = gradient
            if group.get("weight_decay"):
                self._decays.append((group, group["weight_decay"]))
                group["weight_decay"] = 0.0

    def undo(self) -> None:
        for parameter, gradient in self._gradients:
            parameter.grad = gradient
        for group, decay in self._decays:
            group["weight_decay"] = decay
        self._gradients, self._decays = [], []

    def evaluated(self, closure: Callable[[], Any]) -> Callable[[], Any]:
        """Returns a closure that computes gradients as `closure` does, and scales them."""

        def scaled_closure() -> Any:
            self.undo()
            loss = closure()
            self.scale()
            return loss

        return scaled_closure


@contextlib.contextmanager
def scaled(optimizer: torch.optim.Optimizer) -> Iterator[type[torch.optim.Optimizer]]:
    """Scales all gradients of an optimizer of LARS() within the context; those of others stay as they are.

    The value of the context is the class whose step() uses gradients as they are. Within it, sparse_step.py steps for
    parts of the parameters, since the norms are those of whole parameters.

    Raises:
        InvalidArgumentError: A gradient is sparse, or GradScaler leaves unscaling to the optimizer.
    """
    if not isinstance(optimizer, ScalesGradients):
        yield type(optimizer)
        return
    _check_unscaled(optimizer)
    step = _ScaledStep(optimizer)
    try:
        step.scale()
        yield optimizer._of_user
    finally:
        step.undo()


@functools.cache
def _class_of(of_user: type[torch.optim.Optimizer]) -> type[torch.optim.Optimizer]:
    """Returns the subclass of `of_user` that scales gradients; the same at each call."""
    argument = ClosureArgument(types.MethodType(of_user.step, object()))

    @functools.wraps(of_user.step)  # copies the mark `hooked`, too, so that PyTorch does not wrap it for the profiler
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _step(self, of_user.step, argument, args, kwargs)

    step.__signature__ = inspect.signature(of_user.step)  # GradScaler looks for arguments of step()
    members = {"step": step, "_empty": (_empty, (of_user,)), "_of_user": of_user}
    return type(f"{of_user.__name__}WithLARS", (ScalesGradients, of_user), members)


def _step(
    optimizer: Any, inner: Callable[..., Any], argument: ClosureArgument, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Lets `inner`, the step() of the user's class, step with scaled gradients."""
    closure = argument.find(args, kwargs)
    if closure is None:
        with scaled(optimizer):
            return inner(optimizer, *args, **kwargs)
    _check_unscaled(optimizer)
    evaluations = _ScaledStep(optimizer)
    args, kwargs = argument.replaced(args, kwargs, evaluations.evaluated(closure))
    try:
        return inner(optimizer, *args, **kwargs)
    finally:
        evaluations.undo()


def _check_unscaled(optimizer: torch.optim.Optimizer) -> None:
    if getattr(optimizer, "grad_scale", None) is not None:  # GradScaler leaves unscaling to a fused optimizer
        raise InvalidArgumentError(
            "LARS needs unscaled gradients: call scaler.unscale_(optimizer) before scaler.step(optimizer), or make the "
            "optimizer with fused=False"
        )


def _counting_step(optimizer: torch.optim.Optimizer) -> Callable[..., Any]:
    """Returns a step() in place of the one that a scheduler has assigned, which calls the user's class directly."""
    reference = weakref.ref(optimizer)

    @functools.wraps(type(optimizer).step)
    def step(*args: Any, **kwargs: Any) -> Any:
        stepping: Any = reference()
        stepping._step_count = getattr(stepping, "_step_count", 0) + 1
        stepping._opt_called = True
        return type(stepping).step(stepping, *args, **kwargs)

    step.__signature__ = inspect.signature(types.MethodType(type(optimizer).step, optimizer))
    step._with_counter = step._wrapped_by_lr_sched = True  # as schedulers of PyTorch 1.13 and 2 mark theirs
    return step


def _empty(of_user: type[torch.optim.Optimizer]) -> torch.optim.Optimizer:
    return object.__new__(_class_of(of_user))


def _check_kind(optimizer: torch.optim.Optimizer) -> None:
    kind = type(optimizer).__name__
    step = vars(optimizer).get("step")
    of_scheduler = hasattr(step, "_with_counter") or hasattr(step, "_wrapped_by_lr_sched")
    if isinstance(optimizer, Wrapper):
        why = "this optimizer averages gradients already: wrap the other way round, DistributedOptimizer(LARS(…), …)"
    elif isinstance(optimizer, ScalesGradients):
        why = "LARS() returned this optimizer: call LARS() once"
    elif isinstance(optimizer, torch.optim.LBFGS):
        why = "LBFGS searches along gradients of the loss, which scaled gradients are not: pass torch.optim.SGD"
    elif isinstance(optimizer, tuple(getattr(torch.optim, name) for name in _INVARIANT if hasattr(torch.optim, name))):
        why = f"{kind} divides gradients by their own size, which cancels the ratio of LARS: pass torch.optim.SGD"
    elif step is not None and not of_scheduler:
        why = f"step() of this {kind} was replaced by another function: call LARS() before that"
    else:
        return
    raise InvalidArgumentError(why)


def _check_settings(settings: Mapping[str, Any]) -> None:
    lars: Optional[bool] = settings["lars"]
    if lars is not None and not isinstance(lars, bool):
        raise TypeError(f"the `lars` of a parameter group must be True, False or None, not {lars!r}")
    if not isinstance(settings["lars_clip"], bool):
        raise TypeError(f"clip of LARS() must be True or False, not {settings['lars_clip']!r}")
    for name, least in (("trust_coefficient", "above 0"), ("eps", "at least 0")):
        value = settings[f"lars_{name}"]
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"{name} of LARS() must be a number, not {value!r}")
        if not (0 < value < float("inf") or (value == 0 and name == "eps")):
            raise InvalidArgumentError(f"{name} of LARS() must be {least} and finite, not {value!r}")
