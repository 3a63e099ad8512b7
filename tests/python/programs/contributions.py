"""The values that ranks contribute to the tensors of bits.py, for the ranks and for the test that computes the sums."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "docs"))
import bench_reference


def contribution(tensor: dict[str, Any], rank: int) -> numpy.ndarray:
    """Returns the elements of a rank, as stored.

    `tensor` has "dtype", "elements", and "values", a constant for each rank, or else "seed". The values of a seed have
    many magnitudes and long mantissas, so the order of additions, the types in which they are made and every rounding
    show in the sum.
    """
    kind, elements = bench_reference.DATA_TYPES[tensor["dtype"]], tensor["elements"]
    if "values" in tensor:
        return kind.rounded(numpy.full(elements, tensor["values"][rank], kind.sums))
    numbers = numpy.random.default_rng([tensor["seed"], rank])
    if tensor["dtype"] == "int32":
        return numbers.integers(-(2**31), 2**31, elements).astype(kind.stored)
    values = numbers.standard_normal(elements) * 2.0 ** numbers.integers(-13, 13, elements)
    return kind.rounded(values.astype(kind.sums))


OVERFLOWS = 1  # the step whose sums overflow in some elements


def of_step(step: int, rank: int, elements: int) -> numpy.ndarray:
    """Returns the float32 elements of a rank in a step of block_bits.py."""
    values = bench_reference.data(5, step, rank, elements)
    if step == OVERFLOWS:
        values[1100:1140] = 1.5e38
    return values
