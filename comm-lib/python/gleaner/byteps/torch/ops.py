"""push_pull with the arguments of byteps.torch.ops.

A request with a higher priority goes first, as in BytePS; in gleaner.torch a lower one does. `version` has no effect.
"""

from __future__ import annotations

from typing import Any, Optional

import torch

from gleaner import process
from gleaner.byteps.torch.compression import Compression
from gleaner.byteps.torch.rounds import local_rank, local_size, rank, size
from gleaner.process import poll, shutdown
from gleaner.torch import operations
from gleaner.torch.compression import Compressor, check_compression
from gleaner.torch.operations import synchronize


def init(lazy: bool = True, **options: Any) -> None:
    """Joins the job and opens the process's session, as gleaner.torch.init(). Collective; blocks.

    Args:
        lazy: Has no effect.
        **options: As in gleaner.torch.init().

    Raises:
        GleanerError: As in gleaner.torch.init().
    """
    process.init(**options)


def push_pull(
    tensor: torch.Tensor,
    average: bool = True,
    name: Optional[str] = None,
    version: int = 0,
    priority: int = 0,
    compression: Compressor = Compression.none,
) -> torch.Tensor:
    """Returns the average or the sum of `tensor` over all ranks. Collective; blocks.

    If `tensor` requires a gradient, backward() averages or sums the gradient of the result over all ranks in the same
    way, as a tensor named NAME.gradient.

    Args:
        tensor: As in gleaner.torch.push_pull().
        average: True: the average; False: the sum. The same on all ranks.
        name: Name of the tensor, the same on all ranks. None: as in gleaner.push_pull_async().
        version: Has no effect.
        priority: Requests with higher values are sent first; always the same for one name.
        compression: As in gleaner.torch.DistributedOptimizer().

    Returns:
        A new tensor with the shape and type of `tensor`.

    Raises:
        TypeError: As in gleaner.torch.push_pull(); or `compression` is not a compressor.
        GleanerError: As in gleaner.torch.push_pull().
    """
    check_compression(compression)
    compressed, context = compression.compress(tensor)
    return compression.decompress(_PushPull.apply(compressed, average, name, -priority), context)


class _PushPull(torch.autograd.Function):
    """push_pull() whose derivative is the same push_pull of the gradient."""

    @staticmethod
    def forward(context: Any, tensor: torch.Tensor, average: bool, name: Optional[str], priority: int) -> torch.Tensor:
        context.average, context.name, context.priority = average, name, priority
        return operations.push_pull(tensor, average, name, priority)

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        name = None if context.name is None else f"{context.name}.gradient"
        return push_pull(gradient, context.average, name, priority=-context.priority), None, None, None


def push_pull_inplace(
    tensor: torch.Tensor, average: bool = True, name: Optional[str] = None, version: int = 0, priority: int = 0
) -> torch.Tensor:
    """Overwrites `tensor` with its average or its sum over all ranks, and returns it. Collective; blocks.

    Args:
        tensor: As in gleaner.torch.push_pull_inplace().
        average: As in push_pull().
        name: As in push_pull().
        version: Has no effect.
        priority: As in push_pull().

    Raises:
        TypeError: As in gleaner.torch.push_pull_inplace().
        GleanerError: As in gleaner.torch.push_pull_inplace().
    """
    return operations.push_pull_inplace(tensor, average, name, -priority)


def push_pull_async(
    tensor: torch.Tensor, average: bool = True, name: Optional[str] = None, version: int = 0, priority: int = 0
) -> int:
    """Starts push_pull(tensor) and returns a handle for poll() and synchronize(). No gradient flows through it.

    Args:
        tensor: As in gleaner.torch.push_pull_async().
        average: As in push_pull().
        name: As in push_pull().
        version: Has no effect.
        priority: As in push_pull().

    Raises:
        TypeError: As in gleaner.torch.push_pull_async().
        GleanerError: As in gleaner.torch.push_pull_async().
    """
    return operations.push_pull_async(tensor, average, name, -priority)


def push_pull_async_inplace(
    tensor: torch.Tensor, average: bool = True, name: Optional[str] = None, version: int = 0, priority: int = 0
) -> int:
    """Starts push_pull_inplace(tensor) and returns a handle for poll() and synchronize().

    Args:
        tensor: As in gleaner.torch.push_pull_async_inplace().
        average: As in push_pull().
        name: As in push_pull().
        version: Has no effect.
        priority: As in push_pull().

    Raises:
        TypeError: As in gleaner.torch.push_pull_async_inplace().
        GleanerError: As in gleaner.torch.push_pull_async_inplace().
    """
    return operations.push_pull_async_inplace(tensor, average, name, -priority)


def declare(name: str) -> int:
    """Returns 0, as in BytePS. It declares nothing: the first request of a name does, which knows the tensor's size."""
    return 0


__all__ = [
    "Compression",
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
    "shutdown",
    "size",
    "synchronize",
]
