"""Gleaner for PyTorch: sums and averages tensors over all ranks of a job.

    import gleaner.torch as gln
    gln.init()
    optimizer = gln.DistributedOptimizer(optimizer, model.named_parameters())
    gln.broadcast_parameters(model.state_dict(), root_rank=0)

The functions have the names that Horovod and BytePS use. Tensors must be dense, and in the memory of the
CPU or of a CUDA GPU, one GPU per rank. Sums take float32, float64, float16, bfloat16 and int32; averages take these
types except int32; broadcasts take any type. Errors of the library are subclasses of gleaner.GleanerError;
gleaner.errors lists them. docs/python.md has examples.

CUDA tensors behave as PyTorch's own operations: a request uses what was queued on the current stream when it began, and
the result is ready for what is queued on the current stream after synchronize(). That call waits until all ranks have
made their tensors and the network has summed them, and not for the copy of the result to the GPU. Wait for that stream,
or for an event of it, before another stream uses the result.
"""

from __future__ import annotations

from gleaner.errors import GleanerError, WorkersChanged
from gleaner.process import (
    init,
    is_initialized,
    local_rank,
    local_size,
    poll,
    rank,
    shutdown,
    size,
    stats,
    tensor_plan,
    transports,
)
from gleaner.torch import elastic, leftovers  # noqa: F401  # leftovers: registers a function with atexit
from gleaner.torch.broadcasts import (
    broadcast,
    broadcast_,
    broadcast_object,
    broadcast_optimizer_state,
    broadcast_parameters,
)
from gleaner.torch.compression import Compression
from gleaner.torch.cross_barrier import CrossBarrier
from gleaner.torch.ddp import DDPState, ddp_hook
from gleaner.torch.joining import join
from gleaner.torch.lars import LARS
from gleaner.torch.operations import (
    accumulate,
    accumulate_async,
    declare,
    push_pull,
    push_pull_async,
    push_pull_async_inplace,
    push_pull_inplace,
    register_memory,
    synchronize,
    unregister_memory,
)
from gleaner.torch.optimizer import DistributedOptimizer
from gleaner.torch.rates import WarmUp, linear_scaling
from gleaner.torch.sparsity import Sparsity

__all__ = [
    "LARS",
    "Compression",
    "CrossBarrier",
    "DDPState",
    "DistributedOptimizer",
    "GleanerError",
    "Sparsity",
    "WarmUp",
    "WorkersChanged",
    "accumulate",
    "accumulate_async",
    "broadcast",
    "broadcast_",
    "broadcast_object",
    "broadcast_optimizer_state",
    "broadcast_parameters",
    "ddp_hook",
    "declare",
    "elastic",
    "init",
    "is_initialized",
    "join",
    "linear_scaling",
    "local_rank",
    "local_size",
    "poll",
    "push_pull",
    "push_pull_async",
    "push_pull_async_inplace",
    "push_pull_inplace",
    "rank",
    "register_memory",
    "shutdown",
    "size",
    "stats",
    "synchronize",
    "tensor_plan",
    "transports",
    "unregister_memory",
]
