"""A torch module that takes the time of a trace and yields gradients of its sizes, for autograd's real hooks."""

from __future__ import annotations

import time
from typing import Any

import torch

from training.traces import Layer, Trace

# What waits longer than this between being called and beginning waited for parameters, and not for a core of this
# machine, which a GPU would not have needed.
_STALL_SECONDS = 0.002


class Processor:
    """The GPU: does one thing after the other, each in its time, however late the thread is that hands it over."""

    def __init__(self) -> None:
        self._free = 0.0
        self.begins: list[float] = []  # of steps

    def begin_step(self) -> None:
        self.stand_idle()
        self.begins.append(self._free)

    def stand_idle(self) -> None:
        """It has had nothing to do until now."""
        self._free = max(self._free, time.monotonic())

    def work(self, seconds: float) -> None:
        self._free += seconds
        time.sleep(max(0.0, self._free - time.monotonic()))


class Gradients:
    """Of all layers in one piece of memory. Each rank contributes `value` to the first and last element of each."""

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
        """Views that nobody else has, so that autograd takes them without copying."""
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
            # Neither read nor written, so that it takes no memory.
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
