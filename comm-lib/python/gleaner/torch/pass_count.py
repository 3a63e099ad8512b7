"""Counts the backward passes of a step, for backward_passes_per_step."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from gleaner.errors import FailedPreconditionError, InvalidArgumentError


class PassCount:
    """Counts the backward passes since the last averaging round of one optimizer. Not thread safe.

    A reentrant checkpoint runs a backward pass within another pass. Autograd then reports only the end of the inner
    pass. If gradients of all `parameters` are computed by then, this counts as the end of the outer pass. Otherwise the
    outer pass may or may not continue, so passes cannot be counted, which matters only if `per_step` is above 1.

    Args:
        per_step: Number of passes of a step, at least 1.
        parameters: The optimizer's parameters. Parameters that require no gradient are ignored.

    Raises:
        InvalidArgumentError: `per_step` is below 1, or not a whole number.
    """

    def __init__(self, per_step: int, parameters: Iterable[torch.nn.Parameter]) -> None:
        self.set_per_step(per_step)
        self._parameters = list(parameters)
        self.reset()

    def set_per_step(self, per_step: int) -> None:
        """Sets the number of passes of a step, of the step that has begun, too. Raises as the constructor does."""
        if not isinstance(per_step, int) or per_step < 1:
            raise InvalidArgumentError(
                f"backward_passes_per_step must be a whole number of at least 1, not {per_step!r}"
            )
        self.per_step = per_step

    def reset(self) -> None:
        """Forgets all passes, also a failed one."""
        self._passes = 0
        self._reached: set[int] = set()  # ids of parameters whose gradients the running pass has computed
        self._uncountable = False  # an inner pass has ended, and its outer pass may or may not have ended
        self._failed = False

    def restart(self) -> None:
        """Begins to count the passes of the next step."""
        self._passes = 0

    @property
    def is_last(self) -> bool:
        """Whether the running pass, or the next one if none is running, is the last one of the step."""
        return self._passes + 1 >= self.per_step

    def reach(self, parameter: torch.nn.Parameter) -> None:
        """Notes that the running pass has computed the gradient of `parameter`."""
        self._reached.add(id(parameter))  # hash() of a tensor is slow

    def end_pass(self, inner: bool) -> bool:
        """Counts a pass that has ended; `inner` tells whether it ran within another pass.

        Returns whether the step has all of its passes.
        """
        self._uncountable = inner and any(
            each.requires_grad and id(each) not in self._reached for each in self._parameters
        )
        if self._uncountable and self.per_step > 1:
            return False
        self._reached.clear()
        self._passes += 1
        return self._passes >= self.per_step

    def fail_pass(self, has_sent: bool) -> None:
        """Notes that the running pass failed; `has_sent` tells whether gradients of the step are in flight."""
        self._failed = has_sent
        self._reached.clear()

    def check_not_failed(self) -> None:
        """Raises FailedPreconditionError if a pass failed with gradients in flight, which other ranks wait for."""
        if self._failed:
            raise FailedPreconditionError(
                "the last backward() failed after some of its gradients were sent, and the other ranks wait for the "
                "rest: end the program, or restore the last commit of an elastic job"
            )

    def check_countable(self) -> None:
        """Raises FailedPreconditionError if passes cannot be counted and `per_step` is above 1."""
        if self._uncountable and self.per_step > 1:
            raise FailedPreconditionError(
                "backward passes cannot be counted for backward_passes_per_step if all parameters are in reentrant "
                "checkpoints: use checkpoint(..., use_reentrant=False)"
            )
