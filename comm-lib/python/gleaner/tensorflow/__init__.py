"""Gleaner for TensorFlow and Keras 3, with the names that Horovod uses.

    import gleaner.tensorflow as gln
    gln.init()
    model.compile(gln.DistributedOptimizer(keras.optimizers.Adam()), loss=…)
    model.fit(…, callbacks=[gln.BroadcastGlobalVariablesCallback(0), gln.MetricAverageCallback()])

All functions work in eager mode and inside tf.function, but not in functions that XLA compiles (jit_compile=True).
Types are float32, float64, float16, bfloat16 and, for sums, int32; broadcasts take any type. Contributions are summed
in rank order, so results have the same bits on every rank and in every run. docs/frameworks.md has examples;
gleaner.errors lists the errors.
"""

from __future__ import annotations

from gleaner.errors import GleanerError, WorkersChanged
from gleaner.process import (
    broadcast_object,
    init,
    is_initialized,
    local_rank,
    local_size,
    rank,
    shutdown,
    size,
    stats,
    tensor_plan,
    transports,
)
from gleaner.tensorflow.callbacks import BroadcastGlobalVariablesCallback, MetricAverageCallback
from gleaner.tensorflow.operations import (
    Average,
    Sum,
    allreduce,
    broadcast,
    broadcast_variables,
    grouped_allreduce,
    push_pull,
)
from gleaner.tensorflow.optimizer import DistributedOptimizer
from gleaner.tensorflow.tape import DistributedGradientTape

__all__ = [
    "Average",
    "BroadcastGlobalVariablesCallback",
    "DistributedGradientTape",
    "DistributedOptimizer",
    "GleanerError",
    "MetricAverageCallback",
    "Sum",
    "WorkersChanged",
    "allreduce",
    "broadcast",
    "broadcast_object",
    "broadcast_variables",
    "grouped_allreduce",
    "init",
    "is_initialized",
    "local_rank",
    "local_size",
    "push_pull",
    "rank",
    "shutdown",
    "size",
    "stats",
    "tensor_plan",
    "transports",
]
