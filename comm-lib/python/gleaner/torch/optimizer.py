"""DistributedOptimizer: wraps any torch optimizer, and averages gradients over all ranks before each step."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterable, Iterator
from typing import Any, Callable, Optional

import torch

from gleaner import process
from gleaner.errors import FailedPreconditionError, InvalidArgumentError
from gleaner.torch.deltas import Deltas
from gleaner.torch.gradients import Gradients


class Wrapper:
    """The base class of wrapped optimizers. It shares parameter groups and state with the user's optimizer.

    Schedulers that were made before wrapping refer to the user's optimizer, and therefore keep working. A checkpoint
    may be loaded into either optimizer.
    """

    _own: torch.optim.Optimizer  # the user's optimizer
    _wrapped: frozenset[torch.nn.Parameter]  # parameters of the user's optimizer when it was wrapped

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        return self._own.param_groups

    @param_groups.setter
    def param_groups(self, groups: list[dict[str, Any]]) -> None:
        self._own.param_groups = groups

    @property
    def state(self) -> Any:
        return self._own.state

    @state.setter
    def state(self, state: Any) -> None:
        self._own.state = state

    def check_parameters(self) -> None:
        """Raises FailedPreconditionError if parameters were added or removed since wrapping.

        Added parameters would not be averaged.
        """
        parameters = _parameters_of(self)
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

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._own.load_state_dict(state_dict)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        raise FailedPreconditionError(
            "add all parameter groups before wrapping the optimizer: ranks must agree on them"
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Makes copies and pickles objects of the user's class, which do not average: a session cannot be copied."""
        return object.__new__, (type(self._own),), self._own.__getstate__()


class AveragesGradients(Wrapper):
    """The base class that DistributedOptimizer puts before the user's optimizer class. Not thread safe."""

    _gradients: Gradients
    _should_synchronize: bool

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """Waits until all gradients are averages, then lets the user's optimizer step with them. Collective.

        Args:
            closure: As in torch.optim. The gradients of every evaluation of the closure are averaged.

        Returns:
            The result of the user's optimizer.

        Raises:
            FailedPreconditionError: Parameters were added or replaced after wrapping; a gradient was used while it was
                in flight; backward() is still running or has failed; or ranks are at different steps.
            InvalidArgumentError: A gradient is sparse, or shares memory with another gradient.
            GleanerError: The session has failed; see gleaner.errors.
        """

        def averaged_closure() -> Any:
            self._gradients.begin_step()
            with torch.enable_grad():
                loss = closure()
            self.synchronize()
            return loss

        self.check_parameters()
        if closure is None and self._should_synchronize:
            self.synchronize()
        try:
            return super().step(None if closure is None else averaged_closure)
        finally:
            self._gradients.end_step()
            self.note_step()

    # Without this mark Optimizer.__setstate__ wraps `step` for the profiler, as the user's class already does.
    step.hooked = True

    def synchronize(self) -> None:
        """Averages all gradients that are not averages yet. Returns when every parameter.grad is one. Collective.

        Raises:
            FailedPreconditionError: As in step().
            InvalidArgumentError: As in step().
            GleanerError: As in step().
        """
        self._gradients.synchronize()

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Makes step() use the gradients without averaging them, within this context."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        """Zeros gradients as torch.optim does, with the same arguments.

        Raises:
            FailedPreconditionError: Gradients are in flight, or backward() is still running or has failed.
        """
        self._gradients.check_pass()
        if self._gradients.in_flight:
            raise FailedPreconditionError(
                "zero_grad() came after backward() and before step() or synchronize(): gradients are still in flight"
            )
        self._gradients.restart()
        super().zero_grad(*args, **kwargs)


class AccumulatesDeltas(Wrapper):
    """The base class that DistributedOptimizer puts before the user's class if training is asynchronous."""

    _deltas: Deltas

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """Lets the user's optimizer step with this rank's gradients, and exchanges the changes with all ranks.

        The first step is collective: it copies the parameters of rank 0 to all ranks. Later steps wait for no other
        rank, or, if `staleness` is set, only for ranks that are more than `staleness` steps behind.

        Args:
            closure: As in torch.optim. The gradients of its evaluations are not averaged.

        Returns:
            The result of the user's optimizer.

        Raises:
            FailedPreconditionError: Parameters were added or replaced after wrapping, or a parameter was changed other
                than by step() since the last step.
            GleanerError: The session has failed; see gleaner.errors.
        """
        self.check_parameters()
        self.note_step()
        with self._deltas.exchanged():
            return super().step(closure)

    step.hooked = True

    def synchronize(self) -> None:
        """Waits until every rank calls this, and gives all ranks the same parameters. Collective.

        These parameters contain all steps of all ranks.

        Raises:
            FailedPreconditionError: A parameter was changed other than by step() since the last step.
            GleanerError: The session has failed; see gleaner.errors.
        """
        self._deltas.synchronize()


def DistributedOptimizer(
    optimizer: torch.optim.Optimizer,
    named_parameters: Optional[Iterable[tuple[str, torch.nn.Parameter]]] = None,
    backward_passes_per_step: int = 1,
    prioritize: bool = True,
    asynchronous: bool = False,
    staleness: Optional[int] = None,
    wait: str = "backward",
    name: Optional[str] = None,
) -> torch.optim.Optimizer:
    """Wraps an optimizer so that gradients are averaged over all ranks.

    Each gradient is sent as soon as backward() has computed it. When backward() returns, parameter.grad is the average
    over all ranks, so gradients can be clipped, unscaled, logged and zeroed as in a program of one process. A rank
    without a gradient that another rank has contributes zeros. A gradient that no rank has stays None, so that no step
    changes the parameter.

    All ranks must construct the same optimizers with the same parameters in the same order, and make the same calls of
    backward() and step(). The constructor does not wait for other ranks. Use all optimizers of a process from one
    thread. Call gleaner.torch.broadcast_parameters() before the first step; a warning tells if ranks begin with
    different parameters.

    Args:
        optimizer: The optimizer to wrap, with dense gradients and with CPU parameters of a type that can be summed.
            Parameter groups cannot be added after wrapping.
        named_parameters: model.named_parameters(), in the order in which the forward pass uses the parameters. It must
            include all parameters of `optimizer`; other parameters are ignored. None: the names are parameter.0,
            parameter.1, … in the order of the optimizer's parameter groups.
        backward_passes_per_step: Number of backward passes before gradients are averaged. Gradients are added over
            these passes, not averaged.
        prioritize: True: gradients of parameters that come first in `named_parameters` are sent first. False:
            gradients are sent in the order in which backward() computes them.
        asynchronous: True: gradients are not averaged. Each rank steps at its own pace, and adds the change of its step
            to the parameters of all ranks. Results differ from run to run. Parameters must be float32.
        staleness: With `asynchronous`, a step waits while another rank is more than this many steps behind. None: no
            step waits.
        wait: "backward": backward() waits for averages. "step": step() or synchronize() waits, and every use of a
            gradient before that is an error. Not used with `asynchronous`.
        name: Prefix of the names of tensors; None: optimizer.0, optimizer.1, … in the order of construction.

    Returns:
        An optimizer of the class of `optimizer`, with its state and hyperparameters; use it in place of `optimizer`.

    Raises:
        InvalidArgumentError: `optimizer` was wrapped before; `named_parameters` lacks a parameter or has a name twice;
            or another argument is out of range, or cannot be combined with the others.
        TypeError: `optimizer` is not an optimizer; `named_parameters` has elements that are not pairs; `asynchronous`
            is not a bool; or a parameter that requires a gradient is not a dense CPU tensor of a type that can be
            summed.
        GleanerError: There is no session, or it has failed; see gleaner.errors.
    """
    if not isinstance(asynchronous, bool):
        raise TypeError(f"asynchronous must be True or False, not {asynchronous!r}")
    if wait not in ("backward", "step"):
        raise InvalidArgumentError(f"wait must be 'backward' or 'step', not {wait!r}")
    if staleness is not None and not asynchronous:
        raise InvalidArgumentError("staleness needs asynchronous=True: otherwise every step waits for all ranks")
    if asynchronous:
        if backward_passes_per_step != 1:
            raise InvalidArgumentError(
                "backward_passes_per_step must be 1 with asynchronous=True: to use several backward passes per step, "
                "call step() after the last of them"
            )
        named = _named(optimizer, named_parameters)
        distributed = _mixed(AccumulatesDeltas, optimizer)
        distributed._deltas = Deltas(process.current(), named, staleness, prioritize, name)
        return distributed
    return with_gradients(
        AveragesGradients, optimizer, named_parameters, backward_passes_per_step, prioritize, wait, name
    )


def with_gradients(
    kind: type[AveragesGradients],
    optimizer: torch.optim.Optimizer,
    named_parameters: Optional[Iterable[tuple[str, torch.nn.Parameter]]],
    backward_passes_per_step: int,
    prioritize: bool,
    wait: str,
    name: Optional[str],
) -> torch.optim.Optimizer:
    """Returns `optimizer` wrapped by `kind`, with Gradients of its parameters."""
    named = _named(optimizer, named_parameters)
    distributed = _mixed(kind, optimizer)
    distributed._gradients = Gradients(process.current(), named, backward_passes_per_step, prioritize, wait, name)
    distributed._gradients.optimizer = weakref.ref(distributed)
    distributed._should_synchronize = True
    return distributed


def _named(
    optimizer: torch.optim.Optimizer, named_parameters: Optional[Iterable[tuple[str, torch.nn.Parameter]]]
) -> list[tuple[str, torch.nn.Parameter]]:
    """Returns all parameters of the optimizer with their names, which must be unique."""
    _check_optimizer(optimizer)
    parameters = _parameters_of(optimizer)
    if named_parameters is None:
        named = [(f"parameter.{place}", parameter) for place, parameter in enumerate(parameters)]
    else:
        named = _pairs(named_parameters)
    _check_names(named, parameters)
    own = set(parameters)
    return [(name, parameter) for name, parameter in named if parameter in own]


def _check_optimizer(optimizer: torch.optim.Optimizer) -> None:
    if isinstance(optimizer, type) or not hasattr(optimizer, "param_groups"):
        what = f"the class {optimizer.__name__}" if isinstance(optimizer, type) else type(optimizer).__name__
        raise TypeError(f"expected an optimizer, such as torch.optim.SGD(model.parameters(), lr=0.1), not {what}")


def _pairs(named_parameters: Iterable[tuple[str, torch.nn.Parameter]]) -> list[tuple[str, torch.nn.Parameter]]:
    """Returns the pairs as a list; raises TypeError if these are not pairs, as of model.parameters()."""
    pairs = list(named_parameters) if isinstance(named_parameters, Iterable) else None
    if pairs is None or not all(isinstance(each, (tuple, list)) and len(each) == 2 for each in pairs):
        raise TypeError(
            "named_parameters takes pairs of a name and a parameter: pass model.named_parameters(), not "
            f"{type(named_parameters).__name__}"
        )
    return pairs


def _mixed(kind: type, optimizer: torch.optim.Optimizer) -> Any:
    """Returns an optimizer whose class derives from `kind` and from the class of `optimizer`."""
    if isinstance(optimizer, Wrapper):
        raise InvalidArgumentError(
            "DistributedOptimizer() or CrossBarrier() returned this optimizer: pass the original, unwrapped optimizer"
        )
    mixed = type(optimizer.__class__.__name__, (kind, optimizer.__class__), {})
    distributed = mixed.__new__(mixed)
    distributed.__dict__.update(optimizer.__dict__)
    distributed.__dict__.pop("step", None)  # a scheduler's wrapper of the original step(), which bypasses `kind`
    for shared in ("param_groups", "state"):
        distributed.__dict__.pop(shared, None)
    distributed._own, distributed._wrapped = optimizer, frozenset(_parameters_of(optimizer))
    return distributed


def _parameters_of(optimizer: torch.optim.Optimizer) -> list[torch.nn.Parameter]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _check_names(named: list[tuple[str, torch.nn.Parameter]], parameters: list[torch.nn.Parameter]) -> None:
    names = [name for name, _ in named]
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise InvalidArgumentError(f"named_parameters has {twice[0]} twice; every parameter needs its own name")
    known = {parameter for _, parameter in named}
    unnamed = sum(parameter not in known for parameter in parameters)
    if unnamed:
        raise InvalidArgumentError(
            f"{unnamed} of {len(parameters)} parameters of the optimizer are not in named_parameters; pass "
            "model.named_parameters() of every model that it optimizes"
        )
