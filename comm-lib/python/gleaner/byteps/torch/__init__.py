"""The functions of byteps.torch, on top of gleaner.torch. A script of BytePS changes only its import:

    import gleaner.byteps.torch as bps

Names, arguments and defaults are BytePS's. docs/compatibility.md has the differences in behaviour. The functions that
are documented here take the tensors of gleaner.torch, and raise its errors.
"""

from __future__ import annotations

from gleaner.byteps.torch.broadcasts import broadcast_object, broadcast_optimizer_state, broadcast_parameters
from gleaner.byteps.torch.compression import Compression
from gleaner.byteps.torch.ops import (
    declare,
    init,
    local_rank,
    local_size,
    poll,
    push_pull,
    push_pull_async,
    push_pull_async_inplace,
    push_pull_inplace,
    rank,
    shutdown,
    size,
    synchronize,
)
from gleaner.byteps.torch.optimizer import DistributedOptimizer
from gleaner.byteps.torch.rounds import resume, suspend

__all__ = [
    "Compression",
    "DistributedOptimizer",
    "broadcast_object",
    "broadcast_optimizer_state",
    "broadcast_parameters",
    "declare",
    "init",
    "local_rank",
    "local_size",
    "poll",
    "push_pull",
    "push_pull_async",
    "push_pull_async_inplace",
    "push_pull_inplace",
    "rank",
    "resume",
    "shutdown",
    "size",
    "suspend",
    "synchronize",
]
