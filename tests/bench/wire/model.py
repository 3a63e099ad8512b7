"""The bandwidth model (docs/model.md), for estimates: what is measured takes its bound from `gleaner plan`."""

from __future__ import annotations


def bound(bytes_: float, workers: list[float], summers: list[float]) -> float:
    """Seconds of a step at best, with links of so many bits a second."""
    n = len(workers)
    if n == 1:
        return 0.0
    slowest = 8 * bytes_ / min(workers)
    if n == 2:
        return slowest
    return max(slowest, 2 * (n - 1) * 8 * bytes_ / (sum(workers) + (n - 2) / n * sum(summers)))
