"""Tells optimizers when a backward pass ends: by a final callback of the autograd engine, which DDP uses as well."""

from __future__ import annotations

import itertools
import sys
import weakref
from collections.abc import Iterable
from typing import Callable, Optional, Protocol

import torch

from gleaner.session import Session

_BACKWARD = (torch.autograd.backward.__code__, torch.autograd.grad.__code__)


class Reached(Protocol):
    """An optimizer's gradients, as a backward pass sees them."""

    number: int  # which add() gave
    parameters: Iterable[torch.nn.Parameter]

    def unhook(self, parameters: Iterable[torch.nn.Parameter]) -> None: ...

    def begin_end(self, inner: bool) -> bool:
        """Starts what is to be sent at the end of the pass, and returns whether end() has to wait for it."""

    def end(self) -> None: ...

    def fail_pass(self) -> None:
        """The pass ended in an exception."""


class Passes:
    """The optimizers of one session, and the backward pass that is under way."""

    def __init__(self, session: Session) -> None:
        self._numbers = itertools.count()
        self._optimizers: weakref.WeakSet[Reached] = weakref.WeakSet()
        self._current: Callable[[], Optional[_Pass]] = lambda: None

    def add(self, gradients: Reached) -> int:
        """Returns the number of an optimizer, which is the same on all ranks that make the same optimizers.

        A parameter is averaged once in a pass: the optimizer that was made last takes it over from the others.
        """
        for earlier in self._optimizers:
            earlier.unhook(gradients.parameters)
        self._optimizers.add(gradients)
        return self.next_number()

    def optimizers(self) -> list[Reached]:
        """In the order of their construction."""
        return sorted(self._optimizers, key=lambda each: each.number)

    def next_number(self) -> int:
        return next(self._numbers)

    def reach(self, gradients: Reached) -> None:
        """Is called by a gradient's hook during the pass."""
        current = self._current()
        if current is None:
            current = _Pass()
            self._current = weakref.ref(current)
            torch.autograd.Variable._execution_engine.queue_callback(current)
        if gradients not in current.reached:
            current.reached.append(gradients)

    def is_open(self, gradients: Reached) -> bool:
        """Whether a pass that reached these is under way."""
        current = self._current()
        return current is not None and gradients in current.reached

    def close(self) -> None:
        """The session ends."""


class _Pass:
    """The final callback of a backward pass. The autograd engine holds it, and drops it when the pass fails.

    A pass ends for all optimizers that it reached: first all of them start what they have to send, then each waits, in
    the order of their construction. Thus two ranks whose passes reach the optimizers in different orders cannot wait
    for each other in a circle.
    """

    def __init__(self) -> None:
        self.reached: list[Reached] = []

    def __call__(self) -> None:
        reached, self.reached = sorted(self.reached, key=lambda each: each.number), []
        inner = _is_inner()
        for each in [each for each in reached if each.begin_end(inner)]:
            each.end()

    def __del__(self) -> None:
        for each in self.reached:
            each.fail_pass()


def _is_inner() -> bool:
    """Whether the pass that ends runs within another one, as that of a reentrant checkpoint does."""
    frame, passes = sys._getframe(1), 0
    while frame is not None:
        passes += frame.f_code in _BACKWARD
        frame = frame.f_back
    return passes > 1
