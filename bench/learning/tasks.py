"""The models to train, and the modes in which gradients travel. Each takes one line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import gleaner.torch as gln
import torch

from learning import data, models

Parameters = Any


@dataclass(frozen=True)
class Task:
    """A model with its data. All modes train it alike.

    Attributes:
        examples: Loads the data.
        model: Makes the model for a number of classes.
        optimizer: Makes the optimizer of parameters.
        batch: Examples in a step of all ranks together.
        epochs: Passes over the training data, unless the command line has another number.
        metric: Field of a point of the curve that the table shows: test_accuracy or test_loss.
    """

    examples: Callable[[], data.Examples]
    model: Callable[[int], torch.nn.Module]
    optimizer: Callable[[Parameters], torch.optim.Optimizer]
    batch: int
    epochs: int
    metric: str


def sgd(rate: float) -> Callable[[Parameters], torch.optim.Optimizer]:
    return lambda parameters: torch.optim.SGD(parameters, lr=rate, momentum=0.9, weight_decay=1e-4)


def adam(rate: float) -> Callable[[Parameters], torch.optim.Optimizer]:
    return lambda parameters: torch.optim.Adam(parameters, lr=rate)


TASKS: Mapping[str, Task] = {
    "conv": Task(data.digits, models.Convolutional, sgd(0.05), batch=64, epochs=30, metric="test_accuracy"),
    "resnet": Task(data.mnist, models.ResNet, sgd(0.1), batch=64, epochs=5, metric="test_accuracy"),
    "transformer": Task(data.text, models.Transformer, adam(0.003), batch=16, epochs=4, metric="test_loss"),
}


def sparse(steps: int) -> gln.Sparsity:
    """Returns the settings of GradientFlow §3.2 with about as many chunks as its models have: 700 to 1,900."""
    return gln.Sparsity(0.85, warm_up_steps=steps // 10, chunk_elements=100, momentum=0.9)


# Options of DistributedOptimizer, for a number of steps, by the name of the mode. Others are compared with the first.
MODES: Mapping[str, Callable[[int], dict[str, Any]]] = {
    "dense": lambda steps: {},
    "fp16": lambda steps: {"compression": gln.Compression.fp16},
    "bf16": lambda steps: {"compression": gln.Compression.bf16},
    "csc": lambda steps: {"sparsity": sparse(steps)},
    "int8": lambda steps: {"compression": gln.Compression.int8},
    "dithering": lambda steps: {"compression": gln.Compression.dithering},
    "one-bit": lambda steps: {"compression": gln.Compression.one_bit},
    "top-k": lambda steps: {"compression": gln.Compression.top_k},
    "random-k": lambda steps: {"compression": gln.Compression.random_k(kept=64)},
}
