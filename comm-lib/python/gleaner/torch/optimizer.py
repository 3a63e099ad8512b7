"""DistributedOptimizer: any torch optimizer, with gradients averaged over all ranks before each step."""

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
    """What all wrapped optimizers have in common: their groups and state are those of the user's own optimizer.

    Schedulers made before wrapping refer to the user's own optimizer, and a checkpoint may be loaded into either.
    """

    _own: torch.optim.Optimizer
    _wrapped: frozenset[torch.nn.Parameter]  # its parameters, when it was wrapped

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
        """Raises when parameters came or went since: nothing would average those that came."""
        parameters = _parameters_of(self)
        came = sum(each not in self._wrapped for each in parameters)
        if came == 0 and len(parameters) == len(self._wrapped):
            return
        if len(parameters) == len(self._wrapped):
            change = f"{came} of the optimizer's {len(parameters)} parameters came after it was wrapped"
        else:
            change = f"the optimizer has {len(parameters)} parameters, and had {len(self._wrapped)} when it was wrapped"
        raise FailedPreconditionError(
            f"{change}: add all parameter groups before DistributedOptimizer() or CrossBarrier(), or wrap it again"
        )

    def note_step(self) -> None:
        """Tells schedulers made before wrapping, which look at the user's own optimizer, that it has made a step."""
        self._own._step_count = getattr(self._own, "_step_count", 0) + 1
        self._own._opt_called = True

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._own.load_state_dict(state_dict)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        raise FailedPreconditionError(
            "add all parameter groups before wrapping the optimizer: ranks must agree on them"
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Copies and pickles are of the user's own class, and average nothing: a session has no copy."""
        return object.__new__, (type(self._own),), self._own.__getstate__()


class AveragesGradients(Wrapper):
    """What DistributedOptimizer mixes in before the user's own optimizer class."""

    _gradients: Gradients
    _should_synchronize: bool

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """Steps with averages, also of a closure's gradients; waits for those that are not there yet."""

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

    # Optimizer.__setstate__ wraps `step` for its profiler unless this says it did; the wrapped class's step is.
    step.hooked = True

    def synchronize(self) -> None:
        """Waits until every parameter's grad is the average over all ranks, where backward() has not done so."""
        self._gradients.synchronize()

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Within this context step() averages nothing: it takes gradients as they are."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        self._gradients.check_pass()
        if self._gradients.in_flight:
            raise FailedPreconditionError(
                "zero_grad() came after backward() and before step() or synchronize(): gradients are still in flight"
            )
        self._gradients.restart()
        super().zero_grad(*args, **kwargs)


class AccumulatesDeltas(Wrapper):
    """What DistributedOptimizer mixes in for asynchronous training."""

    _deltas: Deltas

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """Lets the wrapped optimizer step with this rank's gradients, and takes the others' steps in."""
        self.check_parameters()
        self.note_step()
        with self._deltas.exchanged():
            return super().step(closure)

    step.hooked = True

    def synchronize(self) -> None:
        """Waits until every rank calls this, and gives all of them the same parameters, with all steps of all ranks."""
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
    """An optimizer of the same class whose gradients are averaged over all ranks.

    Its hyperparameters and state are those of `optimizer`; use it in its place. Each gradient leaves as soon
    as backward has made it, and all averages are in place when backward() returns, or, with
    `backward_passes_per_step` > 1, when that many passes have returned; their gradients are added, not averaged. So
    gradients can be clipped, unscaled, logged and zeroed as in a program of one process. `wait="step"`: step() waits,
    or synchronize(); until then every use of a gradient is an error.

    All ranks need the same parameters. A gradient that a rank lacks counts as zeros there; one that all ranks lack
    stays None, so that the parameter does not move. Pass model.named_parameters(), in the order forward uses them, as
    the front layers are sent first; those that the optimizer does not have are left out. Without it parameters are
    named by place. `prioritize=False` sends gradients in the order they are made. `name` goes before the names of
    parameters, by default optimizer.0, optimizer.1, ... in the order of construction, which is to be the same on all
    ranks. Use gleaner.torch.broadcast_parameters() before the first step.

    `asynchronous`: each rank steps by itself, at its own pace, and adds what its step changed to the parameters of all.
    No step waits for another rank, unless one is more than `staleness` steps behind. Results differ from run to run.
    """
    if wait not in ("backward", "step"):
        raise InvalidArgumentError(f"wait must be 'backward' or 'step', not {wait!r}")
    if staleness is not None and not asynchronous:
        raise InvalidArgumentError("staleness needs asynchronous=True: otherwise every step waits for all ranks")
    if asynchronous:
        if backward_passes_per_step != 1:
            raise InvalidArgumentError("asynchronous steps take gradients as they are: call step() when you want one")
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
    """`optimizer` with `kind` mixed in, and Gradients of its parameters."""
    named = _named(optimizer, named_parameters)
    distributed = _mixed(kind, optimizer)
    distributed._gradients = Gradients(process.current(), named, backward_passes_per_step, prioritize, wait, name)
    distributed._gradients.optimizer = weakref.ref(distributed)
    distributed._should_synchronize = True
    return distributed


def _named(
    optimizer: torch.optim.Optimizer, named_parameters: Optional[Iterable[tuple[str, torch.nn.Parameter]]]
) -> list[tuple[str, torch.nn.Parameter]]:
    """Every parameter of the optimizer by a name of its own."""
    parameters = _parameters_of(optimizer)
    if named_parameters is None:
        named = [(f"parameter.{place}", parameter) for place, parameter in enumerate(parameters)]
    else:
        named = list(named_parameters)
    _check_names(named, parameters)
    own = set(parameters)
    return [(name, parameter) for name, parameter in named if parameter in own]


def _mixed(kind: type, optimizer: torch.optim.Optimizer) -> Any:
    """`optimizer` with `kind` before its class."""
    if isinstance(optimizer, Wrapper):
        raise InvalidArgumentError(
            "the optimizer is what DistributedOptimizer() or CrossBarrier() returned: pass the one that was given to it"
        )
    mixed = type(optimizer.__class__.__name__, (kind, optimizer.__class__), {})
    distributed = mixed.__new__(mixed)
    distributed.__dict__.update(optimizer.__dict__)
    distributed.__dict__.pop("step", None)  # a scheduler's wrapper of the original's, which would go around ours
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
        raise InvalidArgumentError(f"named_parameters has {twice[0]} twice; every parameter needs a name of its own")
    known = {parameter for _, parameter in named}
    unnamed = sum(parameter not in known for parameter in parameters)
    if unnamed:
        raise InvalidArgumentError(
            f"{unnamed} of {len(parameters)} parameters of the optimizer are not in named_parameters; pass those of "
            "every model that it optimizes"
        )
