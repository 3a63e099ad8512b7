"""What check programs share: they run their check_* functions in order, on every rank, and say which passed."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import Any

import numpy


def run_checks(functions: dict[str, Any]) -> None:
    """Stops at the first that fails, since the other ranks would wait for this one."""
    for name, function in list(functions.items()):
        if name.startswith("check_"):
            try:
                function()
            except Exception:
                print(f"failed {name}\n{traceback.format_exc()}", file=sys.stderr, flush=True)
                raise SystemExit(1) from None
            print(f"passed {name}", flush=True)


def data_of(rank: int, elements: int, seed: int = 0) -> numpy.ndarray:
    """What `rank` contributes: float32 of many magnitudes, so that the order of sums shows in the bits."""
    generator = numpy.random.default_rng([seed, rank])
    return (generator.standard_normal(elements) * 10.0 ** generator.integers(-3, 4, elements)).astype(numpy.float32)


def rank_order_sum(parts: Sequence[numpy.ndarray], divide_by: int = 1) -> numpy.ndarray:
    """The contract: added in rank order in float32 (float64 for float64), divided, then rounded once."""
    kind = parts[0].dtype
    wide = kind if kind in (numpy.float64, numpy.int32) else numpy.dtype(numpy.float32)
    total = parts[0].astype(wide)
    for part in parts[1:]:
        total = total + part.astype(wide)
    return (total if divide_by == 1 else (total / wide.type(divide_by)).astype(wide)).astype(kind)


def same_bits(a: numpy.ndarray, b: numpy.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def raises(kind: type[BaseException], call: Any) -> str:
    """The message of the error that `call` must raise."""
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError(f"no {kind.__name__}")
