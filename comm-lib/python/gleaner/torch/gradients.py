"""Averages gradients over all ranks: each leaves as soon as backward has made it, the first needed next goes first.

Source: BytePS §4.1 and §6 (priorities and overlap).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Callable

import torch

from gleaner.errors import FailedPreconditionError, InvalidArgumentError
from gleaner.session import Session
from gleaner.torch.flights import Flights, Slot
from gleaner.torch.hooks import Hooks
from gleaner.torch.passes import Passes
from gleaner.torch.roll_call import Roll, RollCall

_ADVICE = {
    "backward": "call optimizer.synchronize() before you change gradients of fewer backward passes than "
    "backward_passes_per_step, and do not use them in hooks",
    "step": "call optimizer.synchronize() before you clip, scale, zero or read gradients, or leave out wait='step'",
    "forward": "call optimizer.synchronize() before you clip, scale or read gradients, and zero them by "
    "optimizer.zero_grad() alone",
}


class Gradients:
    """The gradients of one optimizer's parameters.

    A round averages all gradients that backward has made since the last one. It begins at the end of the backward pass
    that completes `passes_per_step` (wait="backward"), or in synchronize() (wait="step"), and ends when all averages
    are in place; with wait="forward" postpone() begins it and finish() ends it, parameter by parameter. In each round
    the ranks call the roll: a rank that lacks a gradient which another has contributes zeros, or what it has in
    parameter.grad; a gradient that no rank has is not sent, and is left as it is.

    All parameters that require a gradient are declared at once, in the order backward makes them: the last first. A
    parameter's priority is its place in the model; without `prioritize` gradients leave in the order of declarations.
    """

    optimizer: Callable[[], torch.optim.Optimizer]  # whose gradients they are; a weak reference

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
        names = {parameter: name for name, parameter in named_parameters}
        self._slots = [
            Slot(parameter, name, priority=place if prioritize else 0)
            for place, (parameter, name) in enumerate(names.items())
        ]
        self._of: dict[torch.nn.Parameter, Slot] = {each.parameter: each for each in self._slots}
        self._trainable = {each: None for each in self._slots if each.parameter.requires_grad}
        self._flights = Flights(self._slots)
        self._unsent: dict[Slot, None] = {}  # backward has made their gradients since the last round
        self._overdue: dict[torch.nn.Parameter, Slot] = {}  # in flight although their step has ended
        self._filled: set[Slot] = set()  # overdue, with zeros for want of a gradient
        self._without = self._slots  # had no gradient after the last round
        self._hooks = {
            slot: Hooks(slot.parameter, self, place)
            for place, slot in enumerate(self._slots)
            if slot.parameter.is_floating_point()
        }
        self._start_anew()
        self._steps = 0
        self._enter(session)

    def __del__(self) -> None:
        for hooks in self.__dict__.get("_hooks", {}).values():
            hooks.remove()
        if "_flights" in self.__dict__:
            self._flights.drop(self._flights.all())

    def _enter(self, session: Session) -> None:
        self._session = session
        self._backward = session.attached(Passes)
        self.number = self._backward.add(self)
        name = self._given_name or f"optimizer.{self.number}"
        self._flights.enter(session, name)
        self._flights.declare(reversed(self._trainable))
        self._roll = RollCall(session, f"{name}.roll", len(self._slots))

    def _start_anew(self) -> None:
        self._passes = 0  # backward passes since the last round
        self._reached: set[Slot] = set()  # by the pass that is under way
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
        """Sends the gradients of these no more by itself: another optimizer does. Drops those of this step."""
        for parameter in parameters:
            slot = self._of.get(parameter)
            hooks = self._hooks.pop(slot, None)
            if hooks is not None:
                hooks.remove()
                if slot in self._flights and parameter not in self._overdue:
                    self._flights.drop([slot])

    @property
    def parameters(self) -> Collection[torch.nn.Parameter]:
        return self._of

    @property
    def named(self) -> list[tuple[str, torch.nn.Parameter]]:
        return [(each.name, each.parameter) for each in self._slots]

    @property
    def in_flight(self) -> bool:
        """Whether gradients of this step are."""
        return len(self._flights) > len(self._overdue)

    @property
    def overdue(self) -> Mapping[torch.nn.Parameter, Slot]:
        """Those whose gradients postpone() left in flight."""
        return self._overdue

    @property
    def averaged(self) -> bool:
        """Whether all of this step's gradients are averages."""
        return self._averaged and not self._left_over()

    @property
    def unaveraged(self) -> bool:
        """Whether backward has made gradients since the last round."""
        return self.in_flight or bool(self._unsent)

    def before_gradient(self, place: int, gradient: torch.Tensor) -> None:
        # Of (a.view(6) + b.view(6)) autograd makes one gradient, and gives a and b a view of it each. It copies what is
        # no view itself, where others have it, too; and adds to a gradient that is there.
        slot = self._slots[place]
        if gradient._is_view() and slot.parameter.grad is None:
            slot.is_view = True

    def on_gradient(self, place: int) -> None:
        """Autograd has added to parameter.grad."""
        slot = self._slots[place]
        self._check_expected(slot)
        slot.see()
        self._reached.add(slot)
        self._unsent[slot] = None
        self._backward.reach(self)
        if self._passes + 1 >= self._passes_per_step:
            self._send(slot)

    def _check_expected(self, slot: Slot) -> None:
        self._check_not_failed()
        if slot in self._flights:
            raise FailedPreconditionError(self._why_not_again(slot))
        if self._wait == "forward" and slot not in self._trainable:
            raise FailedPreconditionError(
                f"{slot.name} required no gradient when CrossBarrier was called, and does now; call CrossBarrier "
                "before parameters are frozen, or use DistributedOptimizer"
            )

    def _why_not_again(self, slot: Slot) -> str:
        if slot.parameter in self._overdue:
            return (
                f"{slot.name} was used before its last update, since the module that holds it was not called; call "
                "optimizer.synchronize() before the forward pass, or use DistributedOptimizer"
            )
        if self._wait == "backward":
            return (
                f"the gradient of {slot.name} was computed twice within one backward pass: a parameter that several "
                "checkpointed segments share needs checkpoint(..., use_reentrant=False)"
            )
        return (
            f"the gradient of {slot.name} was computed more than {self._passes_per_step} times before "
            "optimizer.step() or synchronize(); raise backward_passes_per_step to accumulate gradients"
        )

    def begin_end(self, inner: bool) -> bool:
        """As Reached."""
        self._uncounted = inner and any(
            each.parameter.requires_grad and each not in self._reached for each in self._slots
        )
        if self._uncounted and self._passes_per_step > 1:
            return False
        self._reached.clear()
        self._passes += 1
        if self._wait != "backward" or self._passes < self._passes_per_step:
            return False
        self._begin_round(list(self._unsent))
        return True

    def fail_pass(self) -> None:
        """As Reached."""
        self._failed = len(self._flights) > 0
        self._reached.clear()

    def synchronize(self) -> None:
        """Waits until all gradients are averages; those that were set by hand are averaged as well.

        Does nothing when there is no new gradient since the last time in this step.
        """
        self.check_pass()
        if not self.averaged:
            self._begin_round(self._left_over() or [each for each in self._slots if each.parameter.grad is not None])
            self.end()

    def _left_over(self) -> list[Slot]:
        """Those with gradients that the last round has not averaged."""
        by_hand = [each for each in self._without if each.parameter.grad is not None]
        return list(dict.fromkeys([*self._flights.all(), *self._unsent, *by_hand]))

    def check_pass(self) -> None:
        """Raises unless the last backward pass has ended."""
        self._check_not_failed()
        if self._backward.is_open(self):
            raise FailedPreconditionError(
                "backward() is still running, and its averages are not there yet: call this when it has returned"
            )
        if self._uncounted and self._passes_per_step > 1:
            raise FailedPreconditionError(
                "the end of a backward pass cannot be told, and so not counted for backward_passes_per_step, where "
                "checkpointed segments hold all parameters: use checkpoint(..., use_reentrant=False)"
            )

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

    def _begin_round(self, slots: Iterable[Slot]) -> None:
        for slot in slots:
            if slot in self._flights:
                continue
            if slot.parameter.grad is None:
                self._unsent.pop(slot, None)  # the user has dropped it, as model.zero_grad() does
                continue
            if slot not in self._unsent:
                slot.see()
            elif not slot.is_as_seen():
                raise self._changed(slot)
            self._send(slot)
        self._call_roll([each in self._flights for each in self._slots])

    def _call_roll(self, has: list[bool]) -> None:
        self._rounds += 1
        self._roll.start(has, self._steps + 1, self._rounds)

    def _send(self, slot: Slot) -> None:
        self._flights.send(slot, self._why_not(slot, "used"))
        self._unsent.pop(slot, None)

    def end(self) -> None:
        """Ends the round that was begun."""
        try:
            roll = self._roll.finish()
            missing = [each for ranks, each in zip(roll.has, self._slots) if ranks > 0 and each not in self._flights]
            self._send_without(missing)
            changed = self._flights.finish(self._flights.all())
        finally:
            self._forget_in_flight()
        roll.check()
        if changed:
            raise self._changed(changed[0])
        self._without = [each for each in self._slots if each.parameter.grad is None]
        self._passes, self._averaged = 0, True

    def _send_without(self, slots: Iterable[Slot]) -> None:
        """Sends for these, whose gradients backward has not made here, what is in parameter.grad, or zeros."""
        for slot in slots:
            if slot.parameter.grad is None:
                slot.parameter.grad = torch.zeros_like(slot.parameter)
            slot.see()
            self._send(slot)

    def check_can_join(self) -> None:
        """Raises unless begin_absence() may follow."""
        self.check_pass()
        if self._wait == "forward":
            raise FailedPreconditionError("join() cannot answer for CrossBarrier; use DistributedOptimizer")
        if self.unaveraged:
            raise FailedPreconditionError(
                "join() came after backward() and before step(): call step(), or zero_grad() to drop the gradients"
            )

    def begin_absence(self) -> None:
        """Answers the next roll call with nothing."""
        self._roll.start([False] * len(self._slots), -(self._steps + 1), 0)

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
        self._flights.give_zeros(each for ranks, each in zip(roll.has, self._slots) if ranks > 0)
        roll.check()
        self.begin_absence()
        return roll

    def postpone(self) -> None:
        """Ends the step with all gradients in flight; finish() each before the next forward pass needs it.

        What this rank has no gradient of leaves as zeros now: later it might have no occasion to.
        """
        self.check_pass()
        had = [each.parameter.grad is not None for each in self._slots]
        self._filled = {each for each in self._trainable if each.parameter.grad is None}
        for slot in self._unsent:
            if not slot.is_as_seen():
                raise self._changed(slot)
        self._send_without(each for each in self._trainable if each not in self._flights)
        self._call_roll(had)
        self._passes, self._averaged = 0, True
        self._overdue = {each.parameter: each for each in self._flights.all()}
        self.end_step()

    def finish(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Waits until the gradients of these, which postpone() left in flight, are averages."""
        if self._roll.pending:
            roll = self._roll.finish()
            roll.check()
            self._filled.intersection_update(each for each, ranks in zip(self._slots, roll.has) if ranks == 0)
        slots = [self._overdue.pop(parameter) for parameter in parameters]
        changed = self._flights.finish(slots)
        if changed:
            raise self._changed(changed[0])
        for slot in self._filled.intersection(slots):  # no rank has a gradient: nothing is to move it
            slot.parameter.grad = None

    def _changed(self, slot: Slot) -> FailedPreconditionError:
        return FailedPreconditionError(self._why_not(slot, "changed"))

    def _why_not(self, slot: Slot, done: str) -> str:
        return (
            f"the gradient of {slot.name} was {done} after backward() made it and before its average was in place: "
            f"{_ADVICE[self._wait]}"
        )

    def _forget_in_flight(self) -> None:
        self._flights.forget()
        self._overdue.clear()
        self._filled.clear()
