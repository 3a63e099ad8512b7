"""Averages gradients over all ranks. Each gradient is sent as soon as backward() has computed it.

If several gradients wait to be sent, the gradient that the next forward pass needs first goes first. Source: BytePS
§4.1 and §6.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Collection, Iterable
from typing import Callable, Optional, Union

import torch

from gleaner.errors import FailedPreconditionError, GleanerError
from gleaner.session import Session
from gleaner.torch import complaints
from gleaner.torch.chunks import Runs
from gleaner.torch.compression import Compressor, may_encode
from gleaner.torch.fingerprint import fingerprint_of
from gleaner.torch.hooks import Hooks
from gleaner.torch.joining_gradients import JoiningGradients
from gleaner.torch.packing import packing_of
from gleaner.torch.pass_count import PassCount
from gleaner.torch.passes import Passes
from gleaner.torch.postponing_gradients import PostponingGradients
from gleaner.torch.roll_call import Roll, RollCall
from gleaner.torch.slots import Slot
from gleaner.torch.sparsity import Sparsity


class Gradients(JoiningGradients, PostponingGradients):
    """Averages the gradients of one optimizer's parameters. Not thread safe: callers of finish() hold `lock`.

    An averaging round averages all gradients that backward() has computed since the previous averaging round. `wait`
    determines when the round begins and ends:

    - "backward": at the end of the backward pass that completes `passes_per_step`, before backward() returns; after
      fewer passes, in synchronize().
    - "step": in synchronize().
    - "forward": postpone() begins it, and finish() ends it, parameter by parameter.

    Gradients are sent before the round begins: on_gradient() sends each gradient in the last of `passes_per_step`
    passes. Each averaging round makes a roll call (roll_call.py). A rank that lacks a gradient which another rank has
    contributes parameter.grad if the program has set it, else zeros. A gradient that no rank has is not sent, and
    parameter.grad does not change.

    The constructor declares all parameters that require a gradient, from the last to the first, which is the order in
    which backward() computes gradients. A parameter's priority is its place among `named_parameters`. Without
    `prioritize` all priorities are equal, and gradients are sent in the order of declaration.

    Averages of several averaging rounds of a step add up. With `sparsity` or compression in blocks they can't, since a
    rest of each gradient is kept for later: a gradient that backward() adds to an average of this step is an error.

    With `sparsity` only important chunks of gradients are sent (sparse_flights.py), and `sparse` is not None.

    With `fusion_bytes` small gradients are sent in packs (packs.py). A gradient in a pack counts as sent when it waits
    for the others of its pack. A pack that lacks a gradient on this rank is sent after the roll call. tune() changes
    the packs at the end of one of the first steps.
    """

    optimizer: Callable[[], torch.optim.Optimizer]  # the optimizer with these gradients; a weak reference

    def __init__(
        self,
        session: Session,
        named_parameters: Iterable[tuple[str, torch.nn.Parameter]],
        passes_per_step: int,
        prioritize: bool,
        wait: str,
        name: str | None,
        compression: Compressor,
        fusion_bytes: Union[float, str, None] = None,
        sparsity: Optional[Sparsity] = None,
    ) -> None:
        super().__init__()
        self._wait, self._given_name = wait, name
        names = {parameter: name for name, parameter in named_parameters}
        self._slots = [
            Slot(parameter, name, priority=place if prioritize else 0, why=complaints.of_use(wait, name, "used"))
            for place, (parameter, name) in enumerate(names.items())
        ]
        self._passes = PassCount(passes_per_step, names)
        self._slot_of: dict[torch.nn.Parameter, Slot] = {each.parameter: each for each in self._slots}
        self._trainable = {each: None for each in self._slots if each.parameter.requires_grad}
        myself = weakref.ref(self)  # no cycle, so that __del__() runs when the program drops the optimizer
        self._packing = packing_of(
            self._slots, sparsity, fusion_bytes, compression, prioritize, lambda: myself().optimizer().param_groups
        )
        self._flights, self.sparse = self._packing.flights, self._packing.sparse
        # Whether a rest of some gradients is kept for later, so that averages can't add up. Gradients that are sent
        # whole are no exception then: the error should come before a pass has sent anything.
        self._keeps_rest = (sparsity is not None and sparsity.share > 0) or any(
            may_encode(compression, slot.parameter, in_packs=fusion_bytes is not None) for slot in self._slots
        )
        # Slots with an average of this step; True: a further gradient is added to it. Empty if averages may add up.
        self._averages: dict[Slot, bool] = {}
        self._unsent: dict[Slot, None] = {}  # slots whose gradients were computed since the last round and not sent
        self._without_gradient = self._slots  # slots without a gradient after the last averaging round
        self._hooks = {
            slot: Hooks(slot.parameter, self, place, self.is_tuning or slot.place is None or self._keeps_rest)
            for place, slot in enumerate(self._slots)
            if slot.parameter.is_floating_point()
        }
        self._reset_step()
        self._steps = 0
        self.failure: GleanerError | None = None  # of an update in another thread, for the thread that trains to raise
        self.lock = threading.RLock()  # for wait="forward": other threads may call finish() during a backward pass
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
        self._name = name = self._given_name or f"optimizer.{self.number}"
        self._flights.enter(session, name)
        self._flights.declare(reversed(self._trainable))
        self._fingerprinted = False  # whether a roll call of the Session has had the fingerprint of the parameters
        self._roll = RollCall(
            session, f"{name}.roll", len(self._slots), self._packing.fusion, self._flights.fingerprint
        )

    def _reset_step(self) -> None:
        self._passes.reset()
        self._averages.clear()
        self._averaging_rounds = 0  # averaging rounds since the last step
        self._averaged = False

    def set_passes_per_step(self, passes: int) -> None:
        """Sets the number of passes of a step, of this one, too. Raises InvalidArgumentError as PassCount does."""
        self._passes.set_per_step(passes)

    def abandon(self) -> None:
        """Forgets all gradients in flight and starts the step again, after their session has ended."""
        with self.lock:
            self._forget_in_flight()
            self._unsent.clear()
            self._reset_step()
            self.failure = None

    def move_to(self, session: Session) -> None:
        """Forgets all gradients in flight and continues in `session`, that of an elastic job's next round."""
        self.abandon()
        self._steps = 0  # ranks that are new in this round count from 0
        self._packing.restart()
        self._flights = self._packing.flights
        self._enter(session)

    def unhook(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        """Leaves `parameters` to another optimizer: removes their hooks and drops their gradients of this step."""
        for parameter in parameters:
            slot = self._slot_of.get(parameter)
            hooks = self._hooks.pop(slot, None)
            if hooks is not None:
                hooks.remove()
                if slot in self._flights and parameter not in self._overdue:
                    self._flights.drop([slot])

    @property
    def parameters(self) -> Collection[torch.nn.Parameter]:
        return self._slot_of

    @property
    def named(self) -> list[tuple[str, torch.nn.Parameter]]:
        return [(each.name, each.parameter) for each in self._slots]

    @property
    def in_flight(self) -> bool:
        """Whether gradients of this step are in flight."""
        return len(self._flights) > len(self._overdue)

    @property
    def averaged(self) -> bool:
        """Whether all gradients of this step are averages."""
        return self._averaged and not self._left_over()

    @property
    def unaveraged(self) -> bool:
        """Whether backward() has computed gradients since the last averaging round."""
        return self.in_flight or bool(self._unsent)

    def before_gradient(self, place: int, gradient: torch.Tensor) -> None:
        # For a.view(6) + b.view(6) autograd computes one gradient, of which a.grad and b.grad become views. Gradients
        # share memory only in this case: autograd copies a shared gradient that is not a view, and adds any gradient to
        # an existing parameter.grad.
        slot = self._slots[place]
        earlier = slot.parameter.grad
        if gradient._is_view() and earlier is None:
            slot.is_view = True
        if slot in self._averages:  # torch.autograd.grad() comes here, too, and does not add its gradient
            self._averages[slot] = earlier is not None and bool(earlier.any())

    def on_gradient(self, place: int) -> None:
        """Handles a gradient that autograd has added to parameter.grad. Sends it if this is the step's last pass."""
        slot = self._slots[place]
        with self.lock:
            self._check_expected(slot)
            slot.note()
            self._passes.reach(slot.parameter)
            self._unsent[slot] = None
            self._backward.reach(self)
            if self._passes.is_last:
                if self.is_tuning:
                    self._packing.tuning.readiness.record(slot, self._send)
                else:
                    self._send(slot)

    def _check_expected(self, slot: Slot) -> None:
        self._passes.check_not_failed()
        if torch.is_grad_enabled():
            raise FailedPreconditionError(complaints.of_graph(slot.name))
        if slot in self._flights:
            is_overdue = slot.parameter in self._overdue
            raise FailedPreconditionError(
                complaints.of_second_gradient(self._wait, slot.name, is_overdue, self._passes.per_step)
            )
        if self._averages.get(slot):
            raise FailedPreconditionError(complaints.of_added_average(slot.name))
        self._averages.pop(slot, None)
        if self._wait == "forward" and slot not in self._trainable:
            raise FailedPreconditionError(complaints.of_unfrozen(slot.name))

    def start_averaging(self, inner: bool) -> bool:
        """Implements PassParticipant.start_averaging()."""
        has_all_passes = self._passes.end_pass(inner)
        if self._wait != "backward" or not has_all_passes:
            return False
        self._begin_round(list(self._unsent))
        return True

    def fail_pass(self) -> None:
        """Implements PassParticipant.fail_pass()."""
        self._passes.fail_pass(has_sent=len(self._flights) > 0)

    def synchronize(self) -> None:
        """Averages all gradients, including gradients that the program has set itself, and waits for the averages.

        Does nothing if all gradients of this step are averages already.
        """
        self.check_pass()
        if not self.averaged:
            self._begin_round(self._to_average())
            self.finish_averaging()

    def _to_average(self) -> list[Slot]:
        return self._left_over() or [each for each in self._slots if each.parameter.grad is not None]

    def _left_over(self) -> list[Slot]:
        """Returns the slots with gradients that the last averaging round has not averaged."""
        by_hand = [each for each in self._without_gradient if each.parameter.grad is not None]
        return list(dict.fromkeys([*self._flights.all(), *self._unsent, *by_hand]))

    def runs(self) -> dict[torch.nn.Parameter, Runs] | None:
        """Returns the elements of each parameter that a step now updates; None: all elements."""
        return self._flights.runs(self._slot_of) if self._averaged else None

    def check_pass(self) -> None:
        """Raises FailedPreconditionError unless the last backward pass has ended without an error."""
        self._passes.check_not_failed()
        if self._backward.is_open(self):
            raise FailedPreconditionError(
                "backward() is still running, so its averages are not in place: call this after it has returned"
            )
        self._passes.check_countable()

    def begin_step(self) -> None:
        """Begins an evaluation of a closure. Its gradients count as not averaged, whatever came before."""
        self._averaged = False
        self._averages.clear()

    def restart(self) -> None:
        """Forgets the gradients that no averaging round has averaged, since the program has zeroed them."""
        self._unsent.clear()
        self._averages.clear()
        self._passes.restart()

    @property
    def is_tuning(self) -> bool:
        """Whether tune() may still change the packs. The same on all ranks."""
        return self._packing.tuning is not None

    def tune(self) -> None:
        """Changes the packs if the steps so far show better ones. Collective; call it at the end of each step."""
        if not (self.is_tuning and self._averaged):
            return
        if self._packing.tune(self._session, self._name, self._steps + 1, self._last_roll):
            self._flights = self._packing.flights
            self._roll.follow(self._packing.fusion, self._flights.fingerprint)

    def end_step(self) -> None:
        """Ends the step. A step without averages does not count in roll calls."""
        self._steps += self._averaged
        self._averaging_rounds = 0
        self._averaged = False
        self._averages.clear()
        self._session.step()

    def _begin_round(self, slots: Iterable[Slot]) -> None:
        for slot in slots:
            if slot in self._flights:
                continue
            if slot.parameter.grad is None:
                self._unsent.pop(slot, None)  # the program has dropped the gradient, as model.zero_grad() does
                continue
            if slot not in self._unsent:
                slot.note()
            elif not slot.is_as_noted():
                raise self._changed(slot)
            self._send(slot)
        self._call_roll([each in self._flights for each in self._slots])

    def _call_roll(self, has: list[bool]) -> None:
        self._averaging_rounds += 1
        fingerprint = 0 if self._fingerprinted else fingerprint_of(self._slot_of)
        self._fingerprinted = True
        self._roll.start(has, self._steps + 1, self._averaging_rounds, fingerprint)

    def _send(self, slot: Slot) -> None:
        self._flights.send(slot)
        self._unsent.pop(slot, None)

    def finish_averaging(self) -> None:
        """Implements PassParticipant.finish_averaging(): waits for the roll call and all averages of this round."""
        try:
            roll = self._roll.finish()
            missing = [each for each in self._had(roll) if each not in self._flights]
            self._send_without(missing)
            self._flights.send_incomplete()
            sent = self._flights.all()
            changed = self._flights.finish(sent)
        finally:
            self._forget_in_flight()
        roll.check()
        if changed:
            raise self._changed(changed[0])
        if self._keeps_rest:
            self._averages.update(dict.fromkeys(sent, True))
        if self.is_tuning:
            self._packing.tuning.readiness.end_round()
            self._last_roll = roll
        self._without_gradient = [each for each in self._slots if each.parameter.grad is None]
        self._passes.restart()
        self._averaged = True

    def _had(self, roll: Roll) -> list[Slot]:
        """Returns the slots whose gradients some rank has."""
        return [each for each, ranks in zip(self._slots, roll.has.tolist()) if ranks > 0]

    def _send_without(self, slots: Iterable[Slot]) -> None:
        """Sends parameter.grad, or zeros if it is None, for slots without a gradient from this rank's backward()."""
        for slot in slots:
            if slot.parameter.grad is None:
                slot.parameter.grad = torch.zeros_like(slot.parameter)
            slot.note()
            self._send(slot)

    def _checked_roll(self) -> Roll:
        roll = self._roll.finish()
        roll.check()
        return roll

    def _changed(self, slot: Slot) -> FailedPreconditionError:
        return FailedPreconditionError(complaints.of_use(self._wait, slot.name, "changed"))

    def _forget_in_flight(self) -> None:
        self._flights.forget()
        self._overdue.clear()
        self._sent_zeros.clear()
