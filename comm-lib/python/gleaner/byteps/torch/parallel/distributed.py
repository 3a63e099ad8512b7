"""DistributedDataParallel with the arguments of byteps.torch.parallel: a module that averages its gradients itself."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Optional, Union

import torch

from gleaner import process
from gleaner.errors import FailedPreconditionError, InvalidArgumentError
from gleaner.torch.broadcasts import broadcast_packed, broadcast_parameters
from gleaner.torch.compression import Compressor, check_compression
from gleaner.torch.defaults import Default, chosen_compression
from gleaner.torch.gradients import Gradients


class _ModuleGradients(Gradients):
    """The gradients of a module. A step begins with a forward pass, since no optimizer tells when a step ends."""

    def begin_forward(self) -> None:
        if self._averaged:
            self.end_step()

    @staticmethod
    def optimizer() -> None:
        """Returns None, since no optimizer has these gradients."""

    def check_can_join(self) -> None:
        raise FailedPreconditionError("join() does not support DistributedDataParallel; use DistributedOptimizer")


class DistributedDataParallel(torch.nn.Module):
    """Averages the gradients of `module` over all ranks during each backward pass.

    When backward() returns, parameter.grad is the average over all ranks. A rank without a gradient that another rank
    has contributes zeros. The constructor copies the parameters and buffers of rank 0 to all ranks. All ranks must
    construct the same modules in the same order, and make the same forward and backward passes. Use it from one thread.

    Attributes:
        module: The module that the constructor got.
        device_ids: As the argument.
        broadcast_buffers: As the argument.

    Args:
        module: The module, with dense gradients and with parameters of a type that can be summed. Parameters cannot be
            added later.
        device_ids: None, or one device. It has no effect: the module runs where its parameters are.
        broadcast_buffers: True: each forward pass begins with a copy of the buffers of rank 0 to all ranks. It is then
            collective, in evaluation, too.
        compression: As in gleaner.torch.DistributedOptimizer().

    Raises:
        InvalidArgumentError: `device_ids` has other than one device, or the modules of two ranks differ.
        TypeError: A parameter that requires a gradient is not a dense tensor of a type that can be summed, or
            `compression` is not a compressor.
        GleanerError: There is no session, or it has failed; see gleaner.errors.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        device_ids: Optional[Sequence[Any]] = None,
        broadcast_buffers: bool = True,
        compression: Union[Compressor, Default] = Default.OF_JOB,
    ) -> None:
        super().__init__()
        if device_ids is not None and len(device_ids) != 1:
            raise InvalidArgumentError(
                f"device_ids must name one device, not {len(device_ids)}: start one rank for each GPU"
            )
        compression = chosen_compression(compression)
        check_compression(compression)
        self.module, self.device_ids, self.broadcast_buffers = module, device_ids, broadcast_buffers
        self._averages_in_backward = True
        named = list(module.named_parameters())
        self._gradients = _ModuleGradients(process.current(), named, 1, True, "backward", None, compression)
        broadcast_parameters(module.state_dict())

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Calls the module, after a copy of the buffers of rank 0 if `broadcast_buffers` is True.

        Raises:
            GleanerError: The session has failed; see gleaner.errors.
        """
        self._gradients.begin_forward()
        buffers = list(self.module.buffers())
        if self.broadcast_buffers and buffers:
            with torch.no_grad():
                broadcast_packed(buffers, 0)
        return self.module(*inputs, **kwargs)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Refuses copies: gradients belong to a session."""
        raise TypeError("a DistributedDataParallel can be neither copied nor pickled: use its attribute `module`")

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Makes backward passes within this context only add gradients. The next pass after it averages their sum."""
        before, self._averages_in_backward = self._averages_in_backward, False
        self._gradients.set_passes_per_step(sys.maxsize)
        try:
            yield
        finally:
            self._averages_in_backward = before
            if before:
                self._gradients.set_passes_per_step(1)

    def synchronize(self) -> None:
        """Averages the gradients that no backward pass has averaged. Collective.

        Call it on all ranks after backward() if some ranks may have made no backward pass, or no gradient.

        Raises:
            GleanerError: As in gleaner.torch.DistributedOptimizer().
        """
        self._gradients.synchronize()
