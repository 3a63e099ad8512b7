"""A PyTorch module that waits for the times of a trace and produces gradients of its sizes, through autograd's real
hooks."""

from __future__ import annotations

import time
from typing import Any

import torch

from training.traces import Layer, Trace

# If a layer begins later than this after it was called, it waited for parameters. A shorter delay counts as waiting for
# a CPU core, which a GPU would not need.
_STALL_SECONDS = 0.002


class Processor:
    """Simulates a GPU: it executes work items one after the other, even if the calling thread submits them late."""

    def __init__(self) -> None:
        self._free = 0.0
        self.begins: list[float] = []  # times at which steps began

    def begin_step(self) -> None:
        self.stand_idle()
        self.begins.append(self._free)

    def stand_idle(self) -> None:
        """Records that the GPU was idle until now."""
        self._free = max(self._free, time.monotonic())

    def work(self, seconds: float) -> None:
        self._free += seconds
        time.sleep(max(0.0, self._free - time.monotonic()))


class Gradients:
    """The gradients of all layers, in one block of memory.

    A rank's contribution has `value` in the first and last element of each tensor.
    """

    def __init__(self, trace: Trace) -> None:
        self.memory = torch.zeros(trace.bytes // 4)
        self._places: dict[str, torch.Tensor] = {}
        self.value = 0.0
        start = 0
        for layer in reversed(trace.layers):
            for name, size in layer.tensors:
                self._places[name] = self.memory[start : start + size // 4]
                start += size // 4

    def of(self, layer: Layer) -> list[torch.Tensor]:
        """Returns new views of the layer's gradients. Autograd takes views without other references without copying."""
        for name, _ in layer.tensors:
            self._places[name][0] = self._places[name][-1] = self.value
        return [self._places[name].view(-1) for name, _ in layer.tensors]


class _Timed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, activation: torch.Tensor, layer: TimedLayer, *_: torch.Tensor) -> torch.Tensor:
        ctx.layer = layer
        layer.processor.work(layer.trace.forward)
        return activation.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        ctx.layer.processor.work(ctx.layer.trace.backward)
        return gradient, None, *ctx.layer.gradients.of(ctx.layer.trace)


class TimedLayer(torch.nn.Module):
    def __init__(self, trace: Layer, processor: Processor, gradients: Gradients, first: bool) -> None:
        super().__init__()
        self.trace, self.processor, self.gradients, self.first = trace, processor, gradients, first
        self.called = 0.0
        for name, size in reversed(trace.tensors):
            # The parameter is neither read nor written, so it takes no physical memory.
            self.register_parameter(name.rpartition(".")[2], torch.nn.Parameter(torch.empty(size // 4)))

    def forward(self, activation: torch.Tensor) -> torch.Tensor:
        if self.first:
            self.processor.begin_step()
        elif time.monotonic() - self.called > _STALL_SECONDS:
            self.processor.stand_idle()
        backwards = reversed(list(self.parameters()))
        return _Timed.apply(activation, self, *backwards)


class TimedNetwork(torch.nn.Module):
    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self.gradients = Gradients(trace)
        self.processor = Processor()
        self.layers = torch.nn.ModuleList(
            TimedLayer(each, self.processor, self.gradients, first=place == 0)
            for place, each in enumerate(trace.layers)
        )

    def forward(self, activation: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            layer.called = time.monotonic()
            activation = layer(activation)
        return activation
