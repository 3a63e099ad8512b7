"""The bandwidth model (docs/model.md), for estimates and for the effect of shapers.

Measured rows take their bound from `gleaner plan`.
"""

from __future__ import annotations


def bound(bytes_: float, workers: list[float], summers: list[float], saved: float = 0.0) -> float:
    """Returns the least seconds of a step, for links of the given bits per second.

    In T seconds a link of rate r carries at most r * T + saved bits: its shaper had saved up `saved` bits when the step
    began.
    """
    n = len(workers)
    if n == 1:
        return 0.0
    slowest = (8 * bytes_ - saved) / min(workers)
    if n == 2:
        return slowest
    weight = (n - 2) / n  # of a bit on a summer's link, relative to a bit on a worker's link
    together = sum(workers) + weight * sum(summers)
    return max(slowest, (2 * (n - 1) * 8 * bytes_ - (n + weight * len(summers)) * saved) / together)
