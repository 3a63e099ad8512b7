"""The module of byteps.torch.parallel."""

from __future__ import annotations

from gleaner.byteps.torch.parallel.distributed import DistributedDataParallel

__all__ = ["DistributedDataParallel"]
