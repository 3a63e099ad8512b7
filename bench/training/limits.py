"""Computes the least step time if gradients are sent while layers compute. This module does no I/O.

The layers 1 to L compute one after the other: f_1 ... f_L seconds in the forward pass, then b_L ... b_1 seconds in the
backward pass. The gradient of layer i exists when layer i's backward ends, and its sum must arrive before the next
forward of layer i begins. Summing all gradients takes at least the bound of the model (docs/model.md). The bound is
linear in the bytes, so under any plan the gradient of layer i takes at least its share c_i of the bound.

In steady state, one step takes at least as long as each of these times:

- compute: sum(f + b), since a worker computes one layer at a time.
- bound: sum(c), since every byte is sent once per step.
- dependency, for each m: sum(c[1..m]) + sum((f + b)[m..L]). When layer m's backward ends, none of the gradients
  1 ... m - 1 exists, and gradient m has not been sent. Layer m's forward needs the sum of gradient m, and earlier
  layers need the sums of their gradients. So c_1 ... c_m lie between layer m's backward and layer m's next forward, and
  the forward and backward of the layers m ... L lie outside that time. With m = 1: the last gradient of backward must
  be summed before forward begins.

Communication that may be interrupted at any byte, and always sends the gradient that is needed first, reaches the
largest of these times. (This is preemptive scheduling of one machine with release times and tails, which Jackson's rule
solves optimally.) The dependency time with m = 1 and m = L is never less than compute and bound. The module computes
these two as well, because they show what limits the step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from training.traces import Layer


@dataclass(frozen=True)
class Limit:
    """The three lower limits of a step, in seconds."""

    compute: float
    bound: float
    dependency: float

    @property
    def step(self) -> float:
        return max(self.compute, self.bound, self.dependency)


def travel(layers: Sequence[Layer], bound: float) -> list[float]:
    """Returns each layer's share of the bound, in seconds."""
    total = sum(layer.bytes for layer in layers)
    return [bound * layer.bytes / total if total else 0.0 for layer in layers]


def limit(layers: Sequence[Layer], bound: float) -> Limit:
    """Returns the limit for any order of sending, if each layer's forward waits only for its own parameters."""
    front = list(accumulate(travel(layers, bound)))
    behind = list(accumulate(layer.forward + layer.backward for layer in reversed(layers)))[::-1]
    dependency = max(sent + computed for sent, computed in zip(front, behind))
    return Limit(sum(layer.forward + layer.backward for layer in layers), bound, dependency)


def in_order(layers: Sequence[Layer], bound: float) -> float:
    """Returns the least step time if gradients are sent in the order of backward, from the last layer to the first."""
    made = sent = 0.0
    for layer, seconds in zip(reversed(layers), reversed(travel(layers, bound))):
        made += layer.backward
        sent = max(sent, made) + seconds
    return sent + sum(layer.forward for layer in layers)


def afterwards(layers: Sequence[Layer], bound: float) -> float:
    """Returns the least step time if nothing is sent before the backward pass ends."""
    return sum(layer.forward + layer.backward for layer in layers) + bound
