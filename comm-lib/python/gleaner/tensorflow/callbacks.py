"""Callbacks for Keras' fit()."""

from __future__ import annotations

from typing import Any, Optional

import keras
import numpy

from gleaner import process
from gleaner.bundles import Bundles
from gleaner.errors import FailedPreconditionError
from gleaner.tensorflow.operations import broadcast_variables


class BroadcastGlobalVariablesCallback(keras.callbacks.Callback):
    """Copies the model's weights and the optimizer's state of rank `root_rank` to all ranks when training begins.

    States of random generators stay each rank's own, so that dropout differs between ranks.

    Args:
        root_rank: Rank whose values are copied; the same on all ranks.
    """

    def __init__(self, root_rank: int = 0) -> None:
        super().__init__()
        self._root = root_rank

    def on_train_begin(self, logs: Optional[dict[str, Any]] = None) -> None:
        """Raises FailedPreconditionError if the model has no weights yet, because it was not built."""
        if not self.model.built:
            raise FailedPreconditionError("the model has no weights yet: call model.build() before fit()")
        optimizer = self.model.optimizer
        if not optimizer.built:
            optimizer.build(self.model.trainable_variables)
        broadcast_variables([*self.model.weights, *optimizer.variables], self._root)


class MetricAverageCallback(keras.callbacks.Callback):
    """Replaces the metrics of each epoch by their averages over all ranks, which must have the same metrics.

    Put it before callbacks that use metrics, such as ReduceLROnPlateau and ModelCheckpoint.
    """

    def on_epoch_end(self, epoch: int, logs: Optional[dict[str, Any]] = None) -> None:
        if not logs:
            return
        names = sorted(logs)
        values = [(f".{name}", numpy.array(logs[name], numpy.float64)) for name in names]
        averages = process.current().attached(Bundles).push_pull(values)
        logs.update({name: float(value) for name, value in zip(names, averages)})
