"""Gradients on their way: each leaves as soon as backward has made it, the first needed in the next forward goes first.

Source: BytePS §4.1 and §6 (priorities and overlap).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, Callable

import torch

from gleaner import exchange
from gleaner.errors import FailedPreconditionError, InvalidArgumentError
from gleaner.lasting import LastingInputs
from gleaner.session import Session
from gleaner.torch.claims import Claims
from gleaner.torch.recycled import RecycledTensors
from gleaner.torch.tensors import TORCH


class Gradients:
    """Averages the gradients of parameters over all ranks, during backward: in place, where no other gradient may be.

    Declares all parameters at once, in the order backward makes them: the last first. A parameter's priority is its
    place in the model; without `prioritize` they leave in the order of the declarations. Hooks hold parameters, not the
    other way round; they live as long as the parameters.
    """

    def __init__(
        self,
        session: Session,
        named_parameters: Iterable[tuple[str, torch.nn.Parameter]],
        passes_per_step: int,
        prioritize: bool = True,
    ) -> None:
        if passes_per_step < 1:
            raise InvalidArgumentError(f"backward_passes_per_step must be at least 1, not {passes_per_step}")
        self._session = session
        self._passes_per_step = passes_per_step
        self._names = {parameter: name for name, parameter in named_parameters if parameter.requires_grad}
        self._priorities = {parameter: place if prioritize else 0 for place, parameter in enumerate(self._names)}
        self._passes = dict.fromkeys(self._names, 0)
        self._handles: dict[torch.nn.Parameter, int] = {}  # of those in flight
        self._claims = Claims()  # what those overwrite that are
        self._averages = RecycledTensors(self._names)
        self._views: set[torch.nn.Parameter] = set()  # whose gradient may lie in memory of others' as well
        self._overdue: set[torch.nn.Parameter] = set()  # in flight although their step has ended
        self._synchronized = False
        self._hooks: list[Any] = []
        for parameter in reversed(list(self._names)):
            self._hooks.append(parameter.register_hook(functools.partial(self._before_gradient, parameter)))
            self._hooks.append(_call_when_accumulated(parameter, self._on_gradient))
        self._declare()

    def _declare(self) -> None:
        for parameter in reversed(list(self._names)):
            self._session.declare(
                self._tensor_name(parameter),
                TORCH.elements(parameter),
                TORCH.data_type(parameter),
                self._priorities[parameter],
            )

    def abandon(self) -> None:
        """Forgets what is in flight: its session has ended, and the step begins anew."""
        self._forget_in_flight()
        self._passes = dict.fromkeys(self._names, 0)
        self._synchronized = False

    def move_to(self, session: Session) -> None:
        """Goes on in another session, of the next round of an elastic job."""
        self.abandon()
        self._session = session
        self._declare()

    @property
    def in_flight(self) -> bool:
        """Whether gradients of this step are."""
        return len(self._handles) > len(self._overdue)

    @property
    def overdue(self) -> set[torch.nn.Parameter]:
        """Those whose gradients postpone() left in flight."""
        return self._overdue

    @property
    def synchronized(self) -> bool:
        """Whether all of this step's gradients are averages."""
        return self._synchronized

    def synchronize(self) -> None:
        """Waits until all gradients are averages. Parameters that backward did not reach contribute zeros.

        Does nothing when no backward came since the last time.
        """
        if self._synchronized:
            return
        self.start_rest()
        try:
            self.finish(list(self._handles))
        finally:
            self._forget_in_flight()
        self._synchronized = True

    def start_rest(self) -> None:
        """Sends what backward did not reach, as zeros."""
        for parameter in self._names:
            if parameter not in self._handles:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                self._start(parameter)
        self._passes = dict.fromkeys(self._names, 0)

    def finish(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Waits until the gradients of these, all of them in flight, are averages."""
        for parameter in parameters:
            handle = self._handles.pop(parameter)
            self._claims.give_up(self._names[parameter])
            self._overdue.discard(parameter)
            parameter.grad = self._session.synchronize(handle)
            self._views.discard(parameter)

    def end_step(self) -> None:
        """The next backward begins a new step."""
        self._synchronized = False
        self._session.step()

    def postpone(self) -> None:
        """Ends the step with all gradients in flight; finish() each before the next forward pass needs it."""
        self.start_rest()
        self._overdue.update(self._handles)
        self.end_step()

    def _on_gradient(self, parameter: torch.nn.Parameter) -> None:
        if parameter in self._overdue:
            raise FailedPreconditionError(
                f"{self._names[parameter]} was used before its last update, since the module that holds it was not "
                "called; call optimizer.synchronize() before the forward pass, or use DistributedOptimizer"
            )
        if parameter in self._handles:
            raise FailedPreconditionError(
                f"the gradient of {self._names[parameter]} was computed more than {self._passes_per_step} times before "
                "optimizer.step() or synchronize(); raise backward_passes_per_step to accumulate gradients"
            )
        self._synchronized = False
        self._passes[parameter] += 1
        if self._passes[parameter] == self._passes_per_step:
            self._start(parameter)

    def _before_gradient(self, parameter: torch.nn.Parameter, gradient: torch.Tensor) -> None:
        # Of (a.view(6) + b.view(6)) autograd makes one gradient, and gives a and b a view of it each. It copies what is
        # no view itself, where others have it, too; and adds to a gradient that is there.
        if parameter.grad is None and gradient._is_view():
            self._views.add(parameter)

    def _start(self, parameter: torch.nn.Parameter) -> None:
        name, gradient = self._tensor_name(parameter), parameter.grad
        in_place = parameter not in self._views
        if in_place:
            self._claim(parameter)
        self._session.attached(LastingInputs).look(name, TORCH, gradient)
        self._handles[parameter] = exchange.push_pull_async(
            self._session,
            self._averages,
            gradient,
            average=True,
            name=name,
            priority=self._priorities[parameter],
            in_place=in_place,
        )

    def _claim(self, parameter: torch.nn.Parameter) -> None:
        whose = self._claims.make(parameter.grad, self._names[parameter])
        if whose is not None:
            raise InvalidArgumentError(
                f"the gradient of {self._names[parameter]} lies in memory that {whose}'s is sent from; give each "
                "parameter a gradient of its own (grad.clone())"
            )

    def _forget_in_flight(self) -> None:
        for state in (self._handles, self._claims, self._overdue):
            state.clear()

    def _tensor_name(self, parameter: torch.nn.Parameter) -> str:
        return f"gradient.{self._names[parameter]}"


def _call_when_accumulated(parameter: torch.nn.Parameter, call: Callable[[torch.nn.Parameter], None]) -> object:
    """Has autograd call `call(parameter)` each time it has added to parameter.grad; returns what keeps this alive."""
    if hasattr(parameter, "register_post_accumulate_grad_hook"):  # torch >= 2.1
        return parameter.register_post_accumulate_grad_hook(call)
    # Older: a hook on the graph's node that accumulates, which a view of the parameter leads to.
    accumulate = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
    accumulate.register_hook(lambda *_: call(parameter))
    return accumulate
