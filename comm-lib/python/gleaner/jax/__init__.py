"""Gleaner for JAX: averages pytrees over all ranks of a job, outside and inside jax.jit.

    import gleaner.jax as gln
    gln.init()
    params = gln.broadcast(params)                          # all ranks begin with the parameters of rank 0
    optimizer = gln.distributed(optax.adam(1e-3))           # averages gradients over all ranks

Each rank is one process with its own devices. Types are float32, float64, float16, bfloat16 and, for sums, int32;
broadcasts take any type. Contributions are summed in rank order, so results have the same bits on every rank and in
every run. docs/frameworks.md has examples; gleaner.errors lists the errors.
"""

from __future__ import annotations

from gleaner.errors import GleanerError, WorkersChanged
from gleaner.jax.leaving import shutdown
from gleaner.jax.operations import average, broadcast, push_pull
from gleaner.jax.optimizer import DistributedOptimizer, distributed
from gleaner.jax.threads import allow_callbacks
from gleaner.process import (
    broadcast_object,
    init,
    is_initialized,
    local_rank,
    local_size,
    rank,
    size,
    stats,
    tensor_plan,
    transports,
)

allow_callbacks()

__all__ = [
    "DistributedOptimizer",
    "GleanerError",
    "WorkersChanged",
    "average",
    "broadcast",
    "broadcast_object",
    "distributed",
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
