"""How short a step can be when gradients travel while layers compute. Pure.

Layers 1 to L take f_1 ... f_L forward and b_L ... b_1 backward, one after the other. The gradient of layer i is made
when backward is through with it, and its sum has to be there before the next forward of layer i begins. Summing all of
them takes the bound of the model (docs/model.md); any part of them takes at least its part of that, by whatever plan,
since the bound is linear in the bytes: c_i for layer i. Follow one turn in steady state, until the same comes again:

- compute: sum(f + b), since a worker does one thing at a time.
- bound: sum(c), since every byte travels once a turn.
- dependency, for each m: when backward is through with layer m, none of the gradients 1 ... m has left, and all of them
  are needed before forward may begin with layer m. In between lie at least c_1 + ... + c_m, and around that the forward
  and backward of the layers m ... L: a turn takes sum(c[1..m]) + sum((f + b)[m..L]). With m = 1, backward's last
  gradient has to be summed before forward begins.

The largest of these is reached by communication that always sends what is needed first and may be cut anywhere. (It is
the preemptive schedule of one machine with release times and tails, which Jackson's rule solves; its optimum is the
largest such sum over sets of jobs.) The third term is never less than the others, for m = 1 and m = L; those are kept
because they say what binds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from training.traces import Layer


@dataclass(frozen=True)
class Limit:
    """Seconds."""

    compute: float
    bound: float
    dependency: float

    @property
    def step(self) -> float:
        return max(self.compute, self.bound, self.dependency)


def travel(layers: Sequence[Layer], bound: float) -> list[float]:
    """What the sum of each layer's gradients takes, of the bound of all."""
    total = sum(layer.bytes for layer in layers)
    return [bound * layer.bytes / total if total else 0.0 for layer in layers]


def limit(layers: Sequence[Layer], bound: float) -> Limit:
    """Of any order of sending, if each layer's forward waits for its own parameters."""
    front = list(accumulate(travel(layers, bound)))
    behind = list(accumulate(layer.forward + layer.backward for layer in reversed(layers)))[::-1]
    dependency = max(sent + computed for sent, computed in zip(front, behind))
    return Limit(sum(layer.forward + layer.backward for layer in layers), bound, dependency)


def in_order(layers: Sequence[Layer], bound: float) -> float:
    """If gradients are sent in the order backward makes them: then the first layer's, made last, comes last."""
    made = sent = 0.0
    for layer, seconds in zip(reversed(layers), reversed(travel(layers, bound))):
        made += layer.backward
        sent = max(sent, made) + seconds
    return sent + sum(layer.forward for layer in layers)


def afterwards(layers: Sequence[Layer], bound: float) -> float:
    """If nothing is sent before backward is through."""
    return sum(layer.forward + layer.backward for layer in layers) + bound
