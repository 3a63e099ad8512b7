"""Functions for the check programs. A check program runs its check_* functions on every rank, and prints each that
passed."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import Any

import numpy


def run_checks(functions: dict[str, Any]) -> None:
    """Runs all check_* functions. Exits at the first failure, so that the other ranks do not wait for this rank."""
    for name, function in list(functions.items()):
        if name.startswith("check_"):
            try:
                function()
            except Exception:
                print(f"failed {name}\n{traceback.format_exc()}", file=sys.stderr, flush=True)
                raise SystemExit(1) from None
            print(f"passed {name}", flush=True)


def data_of(rank: int, elements: int, seed: int = 0) -> numpy.ndarray:
    """Returns the contribution of `rank`: float32 of many magnitudes, so that the order of a sum affects its bits."""
    generator = numpy.random.default_rng([seed, rank])
    return (generator.standard_normal(elements) * 10.0 ** generator.integers(-3, 4, elements)).astype(numpy.float32)


def rank_order_sum(parts: Sequence[numpy.ndarray], divide_by: int = 1) -> numpy.ndarray:
    """Sums as Gleaner promises: in rank order in float32 (float64 for float64), then divides, then rounds once."""
    kind = parts[0].dtype
    wide = kind if kind in (numpy.float64, numpy.int32) else numpy.dtype(numpy.float32)
    total = parts[0].astype(wide)
    for part in parts[1:]:
        total = total + part.astype(wide)
    return (total if divide_by == 1 else (total / wide.type(divide_by)).astype(wide)).astype(kind)


def same_bits(a: numpy.ndarray, b: numpy.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def raises(kind: type[BaseException], call: Any) -> str:
    """Asserts that `call` raises an error of `kind`. Returns its message."""
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError(f"no {kind.__name__}")
