"""Averages gradients over all ranks: each leaves as soon as backward has made it, the first needed next goes first.

Source: BytePS §4.1 and §6 (priorities and overlap).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import torch

from gleaner import exchange
from gleaner.errors import FailedPreconditionError, InvalidArgumentError
from gleaner.lasting import LastingInputs
from gleaner.session import Session
from gleaner.torch.claims import Claims
from gleaner.torch.hooks import Hooks
from gleaner.torch.passes import Passes
from gleaner.torch.recycled import RecycledTensors
from gleaner.torch.roll_call import Roll, RollCall
from gleaner.torch.tensors import TORCH

WAITS = ("backward", "step", "forward")


class _Seen(NamedTuple):
    """A gradient as backward left it."""

    tensor: torch.Tensor
    version: int

    def is_still(self, gradient: torch.Tensor | None) -> bool:
        return gradient is self.tensor and gradient._version == self.version


class _InFlight(NamedTuple):
    handle: int
    seen: _Seen


class Gradients:
    """The gradients of one optimizer's parameters.

    A round averages all gradients that backward has made since the last one. It begins at the end of the backward pass
    that completes `passes_per_step` (wait="backward"), or in synchronize() (wait="step"), and ends when all averages
    are in place; with wait="forward" postpone() begins it and finish() ends it, parameter by parameter. In each round
    the ranks call the roll: a rank that lacks a gradient which another has contributes zeros, or what it has in
    parameter.grad; a gradient that no rank has is not sent, and is left as it is.

    Averages overwrite gradients where no other gradient may lie in the same memory. All parameters that require a
    gradient are declared at once, in the order backward makes them: the last first. A parameter's priority is its place
    in the model; without `prioritize` gradients leave in the order of the declarations.
    """

    def __init__(
        self,
        session: Session,
        named_parameters: Iterable[tuple[str, torch.nn.Parameter]],
        passes_per_step: int,
        prioritize: bool,
        wait: str,
        name: str | None,
    ) -> None:
        if passes_per_step < 1:
            raise InvalidArgumentError(f"backward_passes_per_step must be at least 1, not {passes_per_step}")
        self._passes_per_step, self._wait, self._given_name = passes_per_step, wait, name
        self._names = {parameter: name for name, parameter in named_parameters}
        self._priorities = {parameter: place if prioritize else 0 for place, parameter in enumerate(self._names)}
        self._trainable = {parameter: None for parameter in self._names if parameter.requires_grad}
        self._averages = RecycledTensors(self._names)
        self._claims = Claims()  # memory that averages in flight overwrite
        self._unsent: dict[torch.nn.Parameter, _Seen] = {}  # made by backward since the last round
        self._in_flight: dict[torch.nn.Parameter, _InFlight] = {}
        self._overdue: set[torch.nn.Parameter] = set()  # in flight although their step has ended
        self._filled: set[torch.nn.Parameter] = set()  # overdue, with zeros for want of a gradient
        self._views: set[torch.nn.Parameter] = set()  # whose gradient may lie in memory of others' as well
        self._without: set[torch.nn.Parameter] = set(self._names)  # had no gradient after the last round
        self._hooks = {each: Hooks(each, self) for each in self._names if each.is_floating_point()}
        self._start_anew()
        self._steps = 0
        self._enter(session)

    def __del__(self) -> None:
        self.unhook(list(self.__dict__.get("_hooks", ())))

    def _enter(self, session: Session) -> None:
        self._session = session
        self.number = session.attached(Passes).add(self)
        self._name = self._given_name or f"optimizer.{self.number}"
        for parameter in reversed(self._trainable):
            self._session.declare(
                self._tensor_name(parameter),
                TORCH.elements(parameter),
                TORCH.data_type(parameter),
                self._priorities[parameter],
            )
        self._roll = RollCall(session, f"{self._name}.roll", len(self._names))

    def _start_anew(self) -> None:
        self._passes = 0  # backward passes since the last round
        self._reached: set[torch.nn.Parameter] = set()  # by the pass that is under way
        self._uncounted = False  # parts of a backward pass ended, whose own end was not told
        self._failed = False  # a backward pass has, with gradients in flight
        self._rounds = 0  # since the last step
        self._averaged = False

    def abandon(self) -> None:
        """Forgets what is in flight: its session has ended, and the step begins anew."""
        self._forget_in_flight()
        self._unsent.clear()
        self._start_anew()

    def move_to(self, session: Session) -> None:
        """Goes on in another session, of the next round of an elastic job."""
        self.abandon()
        self._steps = 0  # newcomers count from the beginning
        self._enter(session)

    def unhook(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Sends the gradients of these no more by itself: another optimizer does."""
        for parameter in parameters:
            if parameter in self._hooks:
                self._hooks.pop(parameter).remove()

    @property
    def names(self) -> Mapping[torch.nn.Parameter, str]:
        return self._names

    @property
    def parameters(self) -> Iterable[torch.nn.Parameter]:
        return self._names

    @property
    def in_flight(self) -> bool:
        """Whether gradients of this step are."""
        return len(self._in_flight) > len(self._overdue)

    @property
    def overdue(self) -> set[torch.nn.Parameter]:
        """Those whose gradients postpone() left in flight."""
        return self._overdue

    @property
    def averaged(self) -> bool:
        """Whether all of this step's gradients are averages."""
        return self._averaged and not self._left_over()

    def before_gradient(self, parameter: torch.nn.Parameter, gradient: torch.Tensor) -> None:
        # Of (a.view(6) + b.view(6)) autograd makes one gradient, and gives a and b a view of it each. It copies what is
        # no view itself, where others have it, too; and adds to a gradient that is there.
        if parameter.grad is None and gradient._is_view():
            self._views.add(parameter)

    def on_gradient(self, parameter: torch.nn.Parameter) -> None:
        """Autograd has added to parameter.grad."""
        self._check_expected(parameter)
        if not parameter.grad.requires_grad:
            # An alias with a version counter of its own: gradients may be parts of one tensor, and share its counter.
            parameter.grad = parameter.grad.data
        self._unsent[parameter] = _Seen(parameter.grad, parameter.grad._version)
        self._reached.add(parameter)
        self._session.attached(Passes).reach(self)
        if self._passes + 1 >= self._passes_per_step:
            self._send(parameter)

    def _check_expected(self, parameter: torch.nn.Parameter) -> None:
        self._check_not_failed()
        name = self._names[parameter]
        if parameter in self._overdue:
            raise FailedPreconditionError(
                f"{name} was used before its last update, since the module that holds it was not called; call "
                "optimizer.synchronize() before the forward pass, or use DistributedOptimizer"
            )
        if parameter in self._in_flight and self._wait == "backward":
            raise FailedPreconditionError(
                f"the gradient of {name} was computed twice within one backward pass: a parameter that several "
                "checkpointed segments share needs checkpoint(..., use_reentrant=False)"
            )
        if parameter in self._in_flight:
            raise FailedPreconditionError(
                f"the gradient of {name} was computed more than {self._passes_per_step} times before optimizer.step() "
                "or synchronize(); raise backward_passes_per_step to accumulate gradients"
            )
        if self._wait == "forward" and parameter not in self._trainable:
            raise FailedPreconditionError(
                f"{name} required no gradient when CrossBarrier was called, and does now; call CrossBarrier before "
                "parameters are frozen, or use DistributedOptimizer"
            )

    def begin_end(self, inner: bool) -> bool:
        """As Reached."""
        unfinished = inner and not self._reached.issuperset(each for each in self._names if each.requires_grad)
        self._uncounted = unfinished
        if unfinished and self._passes_per_step > 1:
            return False
        self._reached.clear()
        self._passes += 1
        if self._wait != "backward" or self._passes < self._passes_per_step:
            return False
        self._begin_round(list(self._unsent))
        return True

    def synchronize(self) -> None:
        """Waits until all gradients are averages; those that were set by hand are averaged as well.

        Does nothing when there is no new gradient since the last time in this step.
        """
        self.check_pass()
        if self.averaged:
            return
        with_gradient = [parameter for parameter in self._names if parameter.grad is not None]
        self._begin_round(self._left_over() or with_gradient)
        self.end()

    def _left_over(self) -> list[torch.nn.Parameter]:
        """Those with gradients that the last round has not averaged."""
        by_hand = [each for each in self._without if each.grad is not None and each not in self._unsent]
        return [*self._in_flight, *self._unsent, *by_hand]

    def check_pass(self) -> None:
        """Raises unless the last backward pass has ended."""
        self._check_not_failed()
        if self._session.attached(Passes).is_open(self):
            raise FailedPreconditionError(
                "backward() is still running, and its averages are not there yet: call this when it has returned"
            )
        if self._uncounted and self._passes_per_step > 1:
            raise FailedPreconditionError(
                "the end of a backward pass cannot be told, and so not counted for backward_passes_per_step, where "
                "checkpointed segments hold all parameters: use checkpoint(..., use_reentrant=False)"
            )

    def fail_pass(self) -> None:
        """As Reached."""
        self._failed = bool(self._in_flight)
        self._reached.clear()

    def _check_not_failed(self) -> None:
        if self._failed:
            raise FailedPreconditionError(
                "the last backward() failed when some of its gradients had left, and the other ranks wait for the "
                "rest: end the program, or restore the last commit of an elastic job"
            )

    def begin_step(self) -> None:
        """Averages that are in place already are of an earlier evaluation by a closure."""
        self._averaged = False

    def restart(self) -> None:
        """The user has zeroed gradients: what backward left and no round has averaged is dropped."""
        self._unsent.clear()
        self._passes = 0

    def end_step(self) -> None:
        """The next backward begins a new step."""
        self._steps += self._averaged
        self._rounds = 0
        self._averaged = False
        self._session.step()

    def _begin_round(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        for parameter in parameters:
            seen = self._unsent.get(parameter)
            if parameter.grad is None and parameter not in self._in_flight:
                self._unsent.pop(parameter, None)  # the user has dropped it, as model.zero_grad() does
            elif seen is not None and not seen.is_still(parameter.grad):
                raise self._changed([parameter])
            elif parameter not in self._in_flight:
                self._send(parameter)
        self._rounds += 1
        self._roll.start([each in self._in_flight for each in self._names], self._steps + 1, self._rounds)

    def end(self) -> None:
        """Ends the round that was begun."""
        try:
            roll = self._roll.finish()
            self._send_missing(roll)
            changed = self._finish(list(self._in_flight))
        finally:
            self._forget_in_flight()
        roll.check()
        if changed:
            raise self._changed(changed)
        self._without = {parameter for parameter in self._names if parameter.grad is None}
        self._passes, self._averaged = 0, True

    def _send_missing(self, roll: Roll) -> None:
        """Sends what other ranks have a gradient of, and this one has not."""
        for ranks, parameter in zip(roll.has, self._names):
            if ranks > 0 and parameter not in self._in_flight:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                self._send(parameter)

    def check_can_join(self) -> None:
        """Raises unless begin_absence() may follow."""
        self.check_pass()
        if self._wait == "forward":
            raise FailedPreconditionError("join() cannot answer for CrossBarrier; use DistributedOptimizer")
        if self._in_flight or self._unsent:
            raise FailedPreconditionError(
                "join() came after backward() and before step(): call step(), or zero_grad() to drop the gradients"
            )

    def begin_absence(self) -> None:
        """Answers the next roll call with nothing. The first step after an absence is counted with the others'."""
        self._roll.start([False] * len(self._names), -(self._steps + 1), 0)

    def roll_is_called(self) -> bool:
        """Whether answer_absent() need not wait for others to call the roll."""
        return self._roll.poll()

    def answer_absent(self) -> Roll:
        """Contributes zeros to a round of the others; when all ranks are absent, ends the absence."""
        roll = self._roll.finish()
        if roll.all_joined():
            self._start_anew()
            self._steps = int(abs(roll.steps).max()) - 1
            return roll
        wanted = [parameter for ranks, parameter in zip(roll.has, self._names) if ranks > 0]
        handles = [self._push_pull(each, torch.zeros_like(each), in_place=True) for each in wanted]
        for handle in handles:
            self._session.synchronize(handle)
        roll.check()
        self.begin_absence()
        return roll

    def postpone(self) -> None:
        """Ends the step with all gradients in flight; finish() each before the next forward pass needs it.

        What this rank has no gradient of leaves as zeros now: later it might have no occasion to.
        """
        self.check_pass()
        had = {parameter for parameter in self._names if parameter.grad is not None}
        for parameter in self._trainable:
            if parameter not in had:
                parameter.grad = torch.zeros_like(parameter)
                self._filled.add(parameter)
            if parameter not in self._in_flight:
                self._send(parameter)
        self._rounds += 1
        self._roll.start([parameter in had for parameter in self._names], self._steps + 1, self._rounds)
        self._passes, self._averaged = 0, True
        self._overdue.update(self._in_flight)
        self.end_step()

    def finish(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Waits until the gradients of these, which postpone() left in flight, are averages."""
        if self._roll.pending:
            roll = self._roll.finish()
            roll.check()
            self._filled.intersection_update(each for each, ranks in zip(self._names, roll.has) if ranks == 0)
        changed = self._finish(parameters)
        if changed:
            raise self._changed(changed)
        for parameter in self._filled.intersection(parameters):  # no rank has a gradient: nothing is to move it
            parameter.grad = None
            self._filled.discard(parameter)

    def _finish(self, parameters: Iterable[torch.nn.Parameter]) -> list[torch.nn.Parameter]:
        """Puts averages in place; returns those whose gradients were changed in flight."""
        changed = []
        for parameter in parameters:
            handle, seen = self._in_flight.pop(parameter)
            self._claims.give_up(self._names[parameter])
            self._overdue.discard(parameter)
            if not seen.is_still(parameter.grad):
                changed.append(parameter)
            parameter.grad = self._session.synchronize(handle)
            self._views.discard(parameter)
        return changed

    def _changed(self, parameters: list[torch.nn.Parameter]) -> FailedPreconditionError:
        advice = {
            "backward": "call optimizer.synchronize() before you change gradients of fewer backward passes than "
            "backward_passes_per_step, and do not change them in hooks",
            "step": "call optimizer.synchronize() before you clip, scale or zero gradients, or leave out wait='step'",
            "forward": "call optimizer.synchronize() before you clip or scale gradients, and zero them by "
            "optimizer.zero_grad() alone",
        }[self._wait]
        return FailedPreconditionError(
            f"the gradient of {self._names[parameters[0]]} was changed after backward() made it and before its average "
            f"was in place: {advice}"
        )

    def _send(self, parameter: torch.nn.Parameter) -> None:
        gradient = parameter.grad
        if gradient.layout is not torch.strided:
            raise InvalidArgumentError(
                f"the gradient of {self._names[parameter]} is sparse, and only dense ones can be averaged: make its "
                "layer with sparse=False (torch.nn.Embedding, torch.nn.EmbeddingBag)"
            )
        in_place = parameter not in self._views
        if in_place:
            self._claim(parameter)
        self._session.attached(LastingInputs).look(self._tensor_name(parameter), TORCH, gradient)
        seen = self._unsent.pop(parameter, None) or _Seen(gradient, gradient._version)
        self._in_flight[parameter] = _InFlight(self._push_pull(parameter, gradient, in_place), seen)

    def _push_pull(self, parameter: torch.nn.Parameter, gradient: torch.Tensor, in_place: bool) -> int:
        return exchange.push_pull_async(
            self._session,
            self._averages,
            gradient,
            average=True,
            name=self._tensor_name(parameter),
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
        for state in (self._in_flight, self._claims, self._overdue, self._filled):
            state.clear()

    def _tensor_name(self, parameter: torch.nn.Parameter) -> str:
        return f"{self._name}.gradient.{self._names[parameter]}"
