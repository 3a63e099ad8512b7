"""The gradients of an optimizer that are reduced as one operation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Callable, Optional

import torch

from gleaner.errors import FailedPreconditionError
from gleaner.horovod.torch.compression import Compressor
from gleaner.horovod.torch.layer import Layer, present
from gleaner.horovod.torch.operations import ReduceOp, start_allreduce, start_sparse_allreduce
from gleaner.horovod.torch.process_sets import ProcessSet


@dataclass(frozen=True)
class Options:
    """How an optimizer reduces its gradients."""

    compression: type[Compressor]
    op: ReduceOp
    scales: tuple[float, float]
    sparse_as_dense: bool
    process_set: ProcessSet


class Reduction:
    """Reduces the gradients of some parameters, once the last of them is there. Not thread safe.

    Args:
        name: Name of the operation.
        parameters: The parameters; several have dense gradients.
        priority: Priority of the operation: lower values are sent first.
        passes: Number of backward passes before each reduction.
    """

    def __init__(
        self, name: str, parameters: Sequence[torch.nn.Parameter], priority: int, options: Options, passes: int
    ) -> None:
        self.passes = passes
        self._name, self._parameters, self._priority, self._options = name, list(parameters), priority, options
        self._passes_of = [0] * len(self._parameters)
        self._handle: Optional[int] = None  # of the operation in flight
        self._layer: Optional[Layer] = None  # that has the handle
        self._unpack: Callable[[Any], Sequence[torch.Tensor]] = list  # makes the results of the operation's result
        self._contexts: list[Any] = []

    @property
    def is_in_flight(self) -> bool:
        return self._handle is not None

    def on_gradient(self, place: int) -> None:
        """Takes note of a backward pass of a parameter. The last pass of the last parameter starts the reduction."""
        if self.is_in_flight or self._passes_of[place] >= self.passes:
            raise FailedPreconditionError(
                f"{self._name}: gradients were computed more than backward_passes_per_step ({self.passes}) times "
                "before step() or synchronize(): increase backward_passes_per_step to accumulate them"
            )
        self._passes_of[place] += 1
        if min(self._passes_of) == self.passes:
            self.start()

    def start(self) -> None:
        """Starts the reduction, unless it has started. A parameter without a gradient gets one of zeros."""
        if self.is_in_flight:
            return
        for parameter in self._parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        self._layer = present()
        gradients = [parameter.grad for parameter in self._parameters]
        options = self._options
        if gradients[0].is_sparse and not options.sparse_as_dense:
            self._handle, total = start_sparse_allreduce(gradients[0], self._name, options.op, options.process_set)
            self._unpack, self._contexts = lambda gathered: [total(gathered)], [None]
            return
        dense = [each.to_dense() if each.is_sparse else each for each in gradients]
        compressed, self._contexts = zip(*map(options.compression.compress, dense))
        self._unpack = list
        self._handle = start_allreduce(
            compressed,
            options.op,
            self._name,
            options.scales,
            options.process_set,
            in_place=True,
            is_group=True,
            priority=self._priority,
        )

    def finish(self) -> None:
        """Waits for the reduction. Then the gradients are its results."""
        handle, self._handle = self._handle, None
        self._passes_of = [0] * len(self._parameters)
        results = self._unpack(self._layer.synchronize(handle))
        for parameter, result, context in zip(self._parameters, results, self._contexts):
            if not result.is_sparse:
                result = self._options.compression.decompress(result, context)
            if result is not parameter.grad:
                _replace(parameter.grad, result)

    def forget(self) -> None:
        """Drops a reduction in flight and the passes since the last one."""
        if self._handle is not None:
            self._layer.forget(self._handle)
            self._handle = None
        self._passes_of = [0] * len(self._parameters)


def _replace(gradient: torch.Tensor, result: torch.Tensor) -> None:
    with torch.no_grad():
        if gradient.is_sparse:  # copy_() takes no sparse tensors of other numbers of elements
            gradient.zero_().add_(result if result.is_sparse else result.to_sparse())
        else:
            gradient.copy_(result)
