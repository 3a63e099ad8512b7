"""The bandwidth model (docs/model.md), for estimates and for shapers: what is measured takes its bound from
`gleaner plan`."""

from __future__ import annotations


def bound(bytes_: float, workers: list[float], summers: list[float], saved: float = 0.0) -> float:
    """Seconds of a step at best, with links of so many bits a second. In T seconds a link of `rate` carries at most
    rate * T bits and `saved` more: what its shaper had saved up when the step began."""
    n = len(workers)
    if n == 1:
        return 0.0
    slowest = (8 * bytes_ - saved) / min(workers)
    if n == 2:
        return slowest
    weight = (n - 2) / n  # of a summer's link, of which each bit serves n workers
    together = sum(workers) + weight * sum(summers)
    return max(slowest, (2 * (n - 1) * 8 * bytes_ - (n + weight * len(summers)) * saved) / together)
