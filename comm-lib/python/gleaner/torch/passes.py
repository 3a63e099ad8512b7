"""Tells optimizers when a backward pass ends, through a final callback of the autograd engine (as DDP does)."""

from __future__ import annotations

import itertools
import sys
import weakref
from collections.abc import Iterable
from typing import Callable, Optional, Protocol

import torch

from gleaner.errors import GleanerError
from gleaner.session import Session

_BACKWARD = (torch.autograd.backward.__code__, torch.autograd.grad.__code__)


class PassParticipant(Protocol):
    """The gradients of one optimizer, which take part in backward passes.

    `number` is the result of Passes.add(). unhook() removes the hooks of `parameters`, which another optimizer takes
    over. At the end of a pass Passes calls start_averaging(), and finish_averaging() if that returned True.
    """

    number: int
    parameters: Iterable[torch.nn.Parameter]

    def unhook(self, parameters: Iterable[torch.nn.Parameter]) -> None: ...

    def start_averaging(self, inner: bool) -> bool:
        """Starts to send the gradients that are due at the end of the pass.

        `inner` tells whether the pass runs within another backward pass. Returns whether to call finish_averaging().
        """

    def finish_averaging(self) -> None:
        """Waits until all averages of this optimizer are in place."""

    def fail_pass(self) -> None:
        """Notes that the pass ended in an exception."""


class Passes:
    """Holds the optimizers of one session and the backward pass that is running. Not thread safe."""

    def __init__(self, session: Session) -> None:
        self._numbers = itertools.count()
        self._optimizers: weakref.WeakSet[PassParticipant] = weakref.WeakSet()
        self._current: Callable[[], Optional[_Pass]] = lambda: None

    def add(self, gradients: PassParticipant) -> int:
        """Adds an optimizer and returns its number.

        The number is the same on all ranks that construct the same optimizers in the same order. An optimizer takes
        over the parameters that it shares with earlier optimizers: a parameter is averaged once per pass, for the
        latest optimizer.
        """
        for earlier in self._optimizers:
            earlier.unhook(gradients.parameters)
        self._optimizers.add(gradients)
        return self.next_number()

    def optimizers(self) -> list[PassParticipant]:
        """Returns the optimizers in the order of their construction."""
        return sorted(self._optimizers, key=lambda each: each.number)

    def next_number(self) -> int:
        return next(self._numbers)

    def reach(self, gradients: PassParticipant) -> None:
        """Notes that the running pass computes gradients of this optimizer. The hooks of parameters call it."""
        current = self._current()
        if current is None:
            current = _Pass()
            self._current = weakref.ref(current)
            torch.autograd.Variable._execution_engine.queue_callback(current)
        if gradients not in current.reached:
            current.reached.append(gradients)

    def is_open(self, gradients: PassParticipant) -> bool:
        """Returns whether a pass that has reached this optimizer is running."""
        current = self._current()
        return current is not None and gradients in current.reached

    def close(self) -> None:
        """Does nothing: the end of the session needs no action here."""


class _Pass:
    """The final callback of a backward pass. The autograd engine owns it, and frees it uncalled if the pass fails.

    A pass reaches an optimizer when it computes the gradient of one of its parameters. At the end of a pass all
    optimizers that the pass has reached start to send, in the order of construction, and then wait in the same order.
    Two ranks whose passes reach the optimizers in different orders therefore cannot deadlock.
    """

    def __init__(self) -> None:
        self.reached: list[PassParticipant] = []

    def __call__(self) -> None:
        reached, self.reached = sorted(self.reached, key=lambda each: each.number), []
        inner = _is_inner()
        averaging = [each for each in reached if each.start_averaging(inner)]
        try:
            for each in averaging:
                each.finish_averaging()
        except GleanerError as error:
            # The message tells the cause, so the traceback ends here: its further frames are those of this package.
            raise error.with_traceback(None) from None
        # An interrupt (Ctrl-C) that came in __del__ would be lost. So only a pass that fails has a __del__.
        self.__class__ = _EndedPass  # type: ignore[assignment]

    def __del__(self) -> None:
        for each in self.reached:
            each.fail_pass()


class _EndedPass:
    """A pass that has ended without an error."""

    reached: list[PassParticipant]


def _is_inner() -> bool:
    """Returns whether the pass that ends runs within another pass, as the pass of a reentrant checkpoint does."""
    frame, passes = sys._getframe(1), 0
    while frame is not None:
        passes += frame.f_code in _BACKWARD
        frame = frame.f_back
    return passes > 1
