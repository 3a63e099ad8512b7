"""A parameter of an optimizer with the state of its gradient, and the tensor that replaces a gradient in flight."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from gleaner.errors import FailedPreconditionError


class GradientInFlight(torch.Tensor):
    """Replaces parameter.grad while the gradient is in flight; every use of it raises FailedPreconditionError.

    A version counter would not suffice: it detects neither writes through `.data` and `.numpy()` nor reads, which may
    see a partly averaged gradient. Autograd in C++ does not see the replacement, and can still add to the memory.
    """

    why: str  # message of the error

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise FailedPreconditionError(next(_in_flight_among([*args, *(kwargs or {}).values()])).why)


def _in_flight_among(arguments: Iterable[Any]) -> Iterator[GradientInFlight]:
    for each in arguments:
        if isinstance(each, GradientInFlight):
            yield each
        elif isinstance(each, (list, tuple)):
            yield from _in_flight_among(each)


@dataclass(eq=False)
class Slot:
    """A parameter of an optimizer, and the state of its gradient."""

    parameter: torch.nn.Parameter
    name: str
    priority: int
    place: torch.Tensor | None = None  # the gradient's place in a pool; None: the gradient is a tensor of its own
    is_view: bool = False  # other gradients may share the memory of this gradient
    noted: torch.Tensor | None = None  # parameter.grad when note() was called
    stand_in: GradientInFlight | None = None  # replaces `noted` as parameter.grad in flight
    version: int = 0  # version counter of `noted` when note() was called

    def note(self) -> None:
        """Notes parameter.grad, so that is_as_noted() detects later changes of it."""
        gradient = self.parameter.grad
        if gradient is not self.place and not gradient.requires_grad:
            # `.data` is an alias with its own version counter. Gradients that are parts of one tensor share a counter.
            gradient = gradient.data
            self.parameter.grad = gradient
        self.noted, self.version = gradient, gradient._version

    def is_as_noted(self) -> bool:
        """Returns whether parameter.grad is still the noted gradient, or its stand-in, and is unchanged."""
        expected = self.noted if self.stand_in is None else self.stand_in
        return self.parameter.grad is expected and self.noted._version == self.version

    def install_stand_in(self, why: str) -> None:
        """Makes every use of parameter.grad raise an error with the message `why`.

        The effect ends with remove_stand_in(), or when the program assigns another value to parameter.grad.
        """
        self.stand_in = torch.Tensor._make_subclass(GradientInFlight, self.noted)  # shares the version counter
        self.stand_in.why = why
        self.parameter.grad = self.stand_in

    def remove_stand_in(self) -> None:
        """Makes the noted gradient parameter.grad again, unless the program has assigned another value."""
        if self.stand_in is not None and self.parameter.grad is self.stand_in:
            self.parameter.grad = self.noted
        self.stand_in = None
