"""A tf.GradientTape whose gradients are averages over all ranks."""

from __future__ import annotations

from typing import Any, Optional

import tensorflow as tf

from gleaner.tensorflow.gradients import average_gradients


class DistributedGradientTape:
    """Wraps a tf.GradientTape: gradient() returns averages over all ranks; everything else is as in the tape.

        with tf.GradientTape() as tape:
            loss = …
        tape = gln.DistributedGradientTape(tape)
        gradients = tape.gradient(loss, model.trainable_variables)

    Args:
        tape: The tape, before or after recording.
        name: As in grouped_allreduce(). Only needed to find the gradients in traces.
        sparse_as_dense: True: makes sparse gradients, as of embeddings, dense. False: a sparse gradient is a TypeError.
    """

    def __init__(self, tape: tf.GradientTape, name: Optional[str] = None, sparse_as_dense: bool = False) -> None:
        self._tape, self._name, self._sparse_as_dense = tape, name, sparse_as_dense

    def __enter__(self) -> DistributedGradientTape:
        self._tape.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._tape.__exit__(*error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tape, name)

    def gradient(self, target: Any, sources: Any, *arguments: Any, **options: Any) -> Any:
        """Returns the averages of tf.GradientTape.gradient() over all ranks, in the structure of `sources`. Collective.

        A gradient that is None must be None on all ranks.
        """
        gradients = self._tape.gradient(target, sources, *arguments, **options)
        flat = tf.nest.flatten(gradients)
        return tf.nest.pack_sequence_as(gradients, average_gradients(flat, self._name, self._sparse_as_dense))
