"""Averages the gradients of a tape or an optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

import tensorflow as tf

from gleaner.tensorflow.operations import Average, grouped_allreduce


def average_gradients(
    gradients: Sequence[Optional[tf.Tensor]], name: Optional[str], sparse_as_dense: bool
) -> list[Optional[tf.Tensor]]:
    """Returns the averages over all ranks. Gradients that are None stay None, and must be None on all ranks.

    Args:
        gradients: Dense gradients; with `sparse_as_dense` also tf.IndexedSlices.
        name: As in grouped_allreduce().
        sparse_as_dense: True: makes sparse gradients dense. False: a sparse gradient is a TypeError.
    """
    present = [gradient for gradient in gradients if gradient is not None]
    if sparse_as_dense:
        present = [tf.convert_to_tensor(gradient) for gradient in present]
    averages = iter(grouped_allreduce(present, Average, name))
    return [None if gradient is None else next(averages) for gradient in gradients]
