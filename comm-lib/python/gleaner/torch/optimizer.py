"""DistributedOptimizer: any torch optimizer, with gradients averaged over all ranks before each step."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any, Callable, Optional

import torch

from gleaner import process
from gleaner.errors import FailedPreconditionError, InvalidArgumentError
from gleaner.torch.deltas import Deltas
from gleaner.torch.gradients import Gradients


class AveragesGradients:
    """What DistributedOptimizer mixes in before the user's own optimizer class."""

    _gradients: Gradients
    _should_synchronize: bool

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """Waits for the averages, then lets the wrapped optimizer step. A closure's gradients are averaged as well."""

        def averaged_closure() -> Any:
            with torch.enable_grad():
                loss = closure()
            self.synchronize()
            return loss

        if closure is None and self._should_synchronize:
            self.synchronize()
        try:
            return super().step(None if closure is None else averaged_closure)
        finally:
            self._gradients.end_step()

    # Optimizer.__setstate__ wraps `step` for its profiler unless this says it did; the wrapped class's step is.
    step.hooked = True

    def synchronize(self) -> None:
        """Waits until every parameter's grad is the average over all ranks: to clip gradients before step()."""
        self._gradients.synchronize()

    @contextlib.contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Within this context step() averages nothing: gradients are taken as they are."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    def zero_grad(self, *args: Any, **kwargs: Any) -> None:
        if self._gradients.in_flight:
            raise FailedPreconditionError(
                "zero_grad() came after backward() and before step() or synchronize(): gradients are still in flight"
            )
        super().zero_grad(*args, **kwargs)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        raise FailedPreconditionError(
            "add all parameter groups before wrapping the optimizer: ranks must agree on them"
        )


class AccumulatesDeltas:
    """What DistributedOptimizer mixes in for asynchronous training."""

    _deltas: Deltas

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """Lets the wrapped optimizer step with this rank's gradients, and takes the others' steps in."""
        with self._deltas.exchanged():
            return super().step(closure)

    step.hooked = True

    def synchronize(self) -> None:
        """Waits until every rank calls this, and gives all of them the same parameters, with all steps of all ranks."""
        self._deltas.synchronize()

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        raise FailedPreconditionError(
            "add all parameter groups before wrapping the optimizer: ranks must agree on them"
        )


def DistributedOptimizer(
    optimizer: torch.optim.Optimizer,
    named_parameters: Optional[Iterable[tuple[str, torch.nn.Parameter]]] = None,
    backward_passes_per_step: int = 1,
    prioritize: bool = True,
    asynchronous: bool = False,
    staleness: Optional[int] = None,
) -> torch.optim.Optimizer:
    """An optimizer of the same class whose step() uses gradients averaged over all ranks.

    It shares parameters, hyperparameters and state with `optimizer`; use it in its place, and give it to learning rate
    schedulers. Each gradient leaves as soon as backward has made it, after `backward_passes_per_step` passes that
    accumulate (they are added, not averaged). All ranks need the same parameters; one that got no gradient on a rank
    counts as zeros there. Pass model.named_parameters(), in the order forward uses them, as the front layers are sent
    first; without it parameters are named by place. `prioritize=False` sends gradients in the order they are made.
    Use gleaner.torch.broadcast_parameters() before the first step.

    `asynchronous`: each rank steps by itself, at its own pace, and adds what its step changed to the parameters of all.
    No step waits for another rank, unless one is more than `staleness` steps behind. Results differ from run to run.
    """
    if staleness is not None and not asynchronous:
        raise InvalidArgumentError("staleness needs asynchronous=True: otherwise every step waits for all ranks")
    if asynchronous:
        if backward_passes_per_step != 1:
            raise InvalidArgumentError("asynchronous steps take gradients as they are: call step() when you want one")
        named = _named(optimizer, named_parameters)
        distributed = _mixed(AccumulatesDeltas, optimizer)
        distributed._deltas = Deltas(process.current(), named, staleness, prioritize)
        return distributed
    return with_gradients(AveragesGradients, optimizer, named_parameters, backward_passes_per_step, prioritize)


def with_gradients(
    kind: type[AveragesGradients],
    optimizer: torch.optim.Optimizer,
    named_parameters: Optional[Iterable[tuple[str, torch.nn.Parameter]]],
    backward_passes_per_step: int,
    prioritize: bool,
) -> torch.optim.Optimizer:
    """`optimizer` with `kind` mixed in, and Gradients of its parameters."""
    named = _named(optimizer, named_parameters)
    distributed = _mixed(kind, optimizer)
    distributed._gradients = Gradients(process.current(), named, backward_passes_per_step, prioritize)
    distributed._should_synchronize = True
    return distributed


def _named(
    optimizer: torch.optim.Optimizer, named_parameters: Optional[Iterable[tuple[str, torch.nn.Parameter]]]
) -> list[tuple[str, torch.nn.Parameter]]:
    """Every parameter of the optimizer by a name of its own."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    if named_parameters is None:
        named = [(f"parameter.{place}", parameter) for place, parameter in enumerate(parameters)]
    else:
        named = list(named_parameters)
    _check_names(named, parameters)
    return named


def _mixed(kind: type, optimizer: torch.optim.Optimizer) -> Any:
    """`optimizer` with `kind` before its class; they share everything."""
    mixed = type(optimizer.__class__.__name__, (kind, optimizer.__class__), {})
    distributed = mixed.__new__(mixed)
    distributed.__dict__.update(optimizer.__dict__)
    distributed.__dict__.pop("step", None)  # a scheduler's wrapper of the original's, which would go around ours
    return distributed


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
