"""A parameter of an optimizer with the state of its gradient, and the tensor that replaces a gradient in flight."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from gleaner.errors import FailedPreconditionError, InvalidArgumentError


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
    why: str  # message of the error for uses of the gradient in flight
    place: torch.Tensor | None = None  # the gradient's place in a pool; None: the gradient is a tensor of its own
    is_view: bool = False  # other gradients may share the memory of this gradient
    noted: torch.Tensor | None = None  # parameter.grad when note() was called
    stand_in: GradientInFlight | None = None  # replaces `noted` as parameter.grad in flight
    version: int = 0  # version counter of `noted` when note() was called
    of_place: GradientInFlight | None = None  # the stand-in of `place`, which serves each time

    def note(self) -> None:
        """Notes parameter.grad, so that is_as_noted() detects later changes of it. Moves it to its place in the pool.

        Raises:
            InvalidArgumentError: The gradient is sparse, and has a place in a pool.
            FailedPreconditionError: The gradient does not fit its place in the pool.
        """
        gradient = self.parameter.grad
        if self.place is not None:
            if gradient is not self.place:
                self._move_to_place(gradient)
            gradient = self.place
        elif not gradient.requires_grad:
            # `.data` is an alias with its own version counter. Gradients that are parts of one tensor share a counter.
            gradient = gradient.data
            self.parameter.grad = gradient
        self.noted, self.version = gradient, gradient._version

    def _move_to_place(self, gradient: torch.Tensor) -> None:
        place = self.place
        self.check_dense(gradient)
        if gradient.shape != place.shape or gradient.dtype != place.dtype or gradient.device != place.device:
            raise FailedPreconditionError(
                f"the gradient of {self.name} is {tuple(gradient.shape)} {gradient.dtype} on {gradient.device}, and "
                f"its parameter was {tuple(place.shape)} {place.dtype} on {place.device} when the optimizer was "
                "wrapped with fusion_bytes or sparsity: change, move and convert models before you wrap their optimizer"
            )
        place.copy_(gradient.detach() if gradient.requires_grad else gradient)
        self.parameter.grad = place

    def check_dense(self, gradient: torch.Tensor) -> None:
        """Raises InvalidArgumentError if `gradient`, of this slot, is sparse."""
        if gradient.layout is not torch.strided:
            raise InvalidArgumentError(
                f"the gradient of {self.name} is sparse, and only dense gradients can be averaged: make its layer with "
                "sparse=False (torch.nn.Embedding, torch.nn.EmbeddingBag)"
            )

    def is_as_noted(self) -> bool:
        """Returns whether parameter.grad is still the noted gradient, or its stand-in, and is unchanged."""
        expected = self.noted if self.stand_in is None else self.stand_in
        return self.parameter.grad is expected and self.noted._version == self.version

    def install_stand_in(self) -> None:
        """Makes every use of parameter.grad raise an error with the message `why`.

        The effect ends with remove_stand_in(), or when the program assigns another value to parameter.grad.
        """
        if self.place is None:
            self.stand_in = self._stand_in()
        else:
            if self.of_place is None:
                self.of_place = self._stand_in()
            self.stand_in = self.of_place
        self.parameter.grad = self.stand_in

    def _stand_in(self) -> GradientInFlight:
        stand_in = torch.Tensor._make_subclass(GradientInFlight, self.noted)  # shares the version counter
        stand_in.why = self.why
        return stand_in

    def remove_stand_in(self) -> None:
        """Makes the noted gradient parameter.grad again, unless the program has assigned another value."""
        if self.stand_in is not None and self.parameter.grad is self.stand_in:
            self.parameter.grad = self.noted
        self.stand_in = None

    def drop(self) -> None:
        """Removes the stand-in and parameter.grad, whose memory an average may still overwrite."""
        if self.parameter.grad is self.stand_in:
            self.parameter.grad = None
        self.stand_in = None

    def clear_place(self) -> None:
        """Fills the place in the pool with zeros. parameter.grad keeps its values."""
        if self.parameter.grad is self.place:
            self.parameter.grad = self.place.clone()
        self.place.zero_()

    def take_average(self, average: torch.Tensor) -> None:
        """Makes `average` parameter.grad, and ends the effect of note()."""
        if self.parameter.grad is not average:
            self.parameter.grad = average
        self.noted, self.is_view = None, False
