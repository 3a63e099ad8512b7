"""The functions of byteps.torch.cross_barrier. A script of BytePS changes only its import:

import gleaner.byteps.torch.cross_barrier as bps
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Optional, Union

import torch

from gleaner.byteps.torch.broadcasts import broadcast_object, broadcast_optimizer_state, broadcast_parameters
from gleaner.byteps.torch.compression import Compression
from gleaner.byteps.torch.ops import init, local_rank, local_size, poll, rank, shutdown, size, synchronize
from gleaner.torch.compression import Compressor
from gleaner.torch.cross_barrier import UpdatesInForward, crossing
from gleaner.torch.defaults import Default


class UpdatesAndClears(UpdatesInForward):
    """Also clears each gradient after its update, and ends the updates of the last step within that step."""

    __slots__ = ("_steps_left",)

    _steps_left: int

    def step(self, *args: Any, **kwargs: Any) -> Any:
        """Ends the step as UpdatesInForward.step() does. The last step returns when all parameters are updated.

        Raises:
            GleanerError: As in UpdatesInForward.step().
        """
        result = super().step(*args, **kwargs)
        self.zero_grad()
        self._steps_left -= 1
        if self._steps_left == 0:
            self.synchronize()
        return result


def CrossBarrier(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    named_parameters: Optional[Iterable[tuple[str, torch.nn.Parameter]]] = None,
    compression: Union[Compressor, Default] = Default.OF_JOB,
    backward_passes_per_step: int = 1,
    num_steps: int = 10**6,
) -> torch.optim.Optimizer:
    """Wraps an optimizer so that step() returns before averages arrive, as gleaner.torch.CrossBarrier().

    Gradients are cleared after each update, so a program need not call zero_grad().

    Args:
        model: As in gleaner.torch.CrossBarrier().
        optimizer: As in gleaner.torch.CrossBarrier().
        named_parameters: Has no effect: names are those of the model.
        compression: As in gleaner.torch.DistributedOptimizer().
        backward_passes_per_step: As in gleaner.torch.CrossBarrier().
        num_steps: Number of the step that returns only when all parameters are updated, the last one.

    Returns:
        As gleaner.torch.CrossBarrier().

    Raises:
        TypeError: As in gleaner.torch.CrossBarrier().
        GleanerError: As in gleaner.torch.CrossBarrier().
    """
    wrapped = crossing(UpdatesAndClears, optimizer, model, backward_passes_per_step, True, None, compression)
    wrapped._steps_left = num_steps
    return wrapped


__all__ = [
    "Compression",
    "CrossBarrier",
    "broadcast_object",
    "broadcast_optimizer_state",
    "broadcast_parameters",
    "init",
    "local_rank",
    "local_size",
    "poll",
    "rank",
    "shutdown",
    "size",
    "synchronize",
]
