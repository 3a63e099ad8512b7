"""Learning rates for large batches: the linear scaling rule and a warm-up.

    rate = gln.linear_scaling(0.1, batch=32 * gln.size())
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    after = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=900)
    scheduler = gln.WarmUp(optimizer, steps=100, after=after)

Source: Goyal et al. 2017, "Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour", §2.1 and §2.2.
"""

from __future__ import annotations

from typing import Any, Optional

import torch

from gleaner.errors import InvalidArgumentError


def linear_scaling(base_lr: float, batch: int, base_batch: int = 256) -> float:
    """Returns base_lr · batch / base_batch: the learning rate grows with the batch (Goyal et al. 2017, §2.1).

    Args:
        base_lr: Learning rate that suits `base_batch`.
        batch: Number of examples in a step of all ranks together, such as 32 * gln.size().
        base_batch: Number of examples in a step for which `base_lr` was found.

    Raises:
        InvalidArgumentError: A number is not above 0.
    """
    for name, value in (("base_lr", base_lr), ("batch", batch), ("base_batch", base_batch)):
        if not value > 0:
            raise InvalidArgumentError(f"{name} of linear_scaling() must be above 0, not {value!r}")
    return base_lr * batch / base_batch


class WarmUp:
    """A scheduler that raises the learning rate linearly, and then hands over to another scheduler.

    The rate of step s is rate · (start + (1 - start) · s / steps) for s = 0, …, steps, where `rate` is the optimizer's
    when WarmUp is made. From step `steps` on, the rate is that of `after` for its steps 0, 1, …, so `after` counts the
    steps after the warm-up only. Not thread safe.

    torch.optim.lr_scheduler.SequentialLR does not replace it: it warns of its own deprecated call when it hands over,
    and PyTorch 1.13 refuses a scheduler of the wrapped optimizer beside one of the original.

    Args:
        optimizer: The optimizer, wrapped by LARS(), DistributedOptimizer() or CrossBarrier() or not. Its rate is the
            rate after the warm-up, such as linear_scaling() returns.
        steps: Number of steps of the warm-up, at least 1.
        after: Any scheduler of the same optimizer, made before WarmUp; None: the rate stays. Do not step it yourself.
        start: Factor of the rate in step 0, from 0 to 1, such as base_batch / batch to begin with base_lr. None:
            1 / (steps + 1), so that the rate rises from zero, but the first step is not lost.

    Raises:
        InvalidArgumentError: `steps` or `start` is out of range, or `after` belongs to another optimizer.
    """

    def __init__(
        self, optimizer: torch.optim.Optimizer, steps: int, after: Optional[Any] = None, start: Optional[float] = None
    ) -> None:
        if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
            raise InvalidArgumentError(f"steps of WarmUp() must be a whole number above 0, not {steps!r}")
        if start is not None and not 0 <= start <= 1:
            raise InvalidArgumentError(f"start of WarmUp() must be from 0 to 1, not {start!r}")
        # An optimizer and its wrapped optimizer are two objects with one list of parameter groups.
        if after is not None and after.optimizer.param_groups is not optimizer.param_groups:
            raise InvalidArgumentError(f"{type(after).__name__} belongs to another optimizer: make it for this one")
        self.optimizer, self.after = optimizer, after
        self.last_epoch = 0  # the name of torch.optim's schedulers: steps so far
        self._steps = steps
        self._start = 1 / (steps + 1) if start is None else start
        self._rates = [float(group["lr"]) for group in optimizer.param_groups]
        self._set_rates()

    def step(self, *arguments: Any) -> None:
        """Sets the rates of the next step. Call it after optimizer.step().

        Args:
            *arguments: Arguments of the step() of `after`, such as the loss for ReduceLROnPlateau. Not used before
                `after` takes over.
        """
        self.last_epoch += 1
        if self.last_epoch <= self._steps:
            self._set_rates()
        elif self.after is not None:
            self.after.step(*arguments)

    def get_last_lr(self) -> list[float]:
        """Returns the current rate of each parameter group."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Returns the state, with that of `after`. As with torch.optim, the current rates are in the optimizer's."""
        after = None if self.after is None else self.after.state_dict()
        return {
            "last_epoch": self.last_epoch,
            "steps": self._steps,
            "start": self._start,
            "rates": list(self._rates),
            "after": after,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues from a saved state. Load the optimizer's state, too, which has the current rates.

        Args:
            state: Result of state_dict().

        Raises:
            InvalidArgumentError: Only one of `state` and this object has an `after`, or the numbers of groups differ.
        """
        if (state["after"] is None) != (self.after is None):
            lacking = "the checkpoint" if state["after"] is None else "this WarmUp"
            raise InvalidArgumentError(
                f"{lacking} has no scheduler `after`: make WarmUp() as it was made when it was saved"
            )
        if len(state["rates"]) != len(self._rates):
            raise InvalidArgumentError(
                f"the checkpoint of WarmUp() has {len(state['rates'])} parameter groups, the optimizer "
                f"{len(self._rates)}: make the same groups"
            )
        self.last_epoch, self._steps, self._start = state["last_epoch"], state["steps"], state["start"]
        self._rates = list(state["rates"])
        if self.after is not None:
            self.after.load_state_dict(state["after"])

    def _set_rates(self) -> None:
        factor = self._start + (1 - self._start) * self.last_epoch / self._steps
        for group, rate in zip(self.optimizer.param_groups, self._rates):
            reached = rate if self.last_epoch == self._steps else rate * factor
            if isinstance(group["lr"], torch.Tensor):
                group["lr"].fill_(reached)
            else:
                group["lr"] = reached
