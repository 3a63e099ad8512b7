"""push_pull of tensors through the process's session, under the names that users of Horovod and BytePS know."""

from __future__ import annotations

from typing import Optional

import torch

from gleaner import exchange, process
from gleaner.torch.tensors import TORCH


def declare(tensor: torch.Tensor, name: str, priority: int = 0) -> None:
    """Tells the job about a tensor before its first push_pull, so that one plan is made for many. Does not block."""
    process.current().declare(name, TORCH.elements(tensor), TORCH.data_type(tensor), priority)


def push_pull(
    tensor: torch.Tensor, average: bool = True, name: Optional[str] = None, priority: int = 0
) -> torch.Tensor:
    """The average, or sum, of `tensor` over all ranks, as a new tensor. Blocks. No gradient flows through it."""
    return synchronize(push_pull_async(tensor, average, name, priority))


def push_pull_inplace(
    tensor: torch.Tensor, average: bool = True, name: Optional[str] = None, priority: int = 0
) -> torch.Tensor:
    """Overwrites `tensor` with its average, or sum, over all ranks. Blocks."""
    return synchronize(push_pull_async_inplace(tensor, average, name, priority))


def push_pull_async(tensor: torch.Tensor, average: bool = True, name: Optional[str] = None, priority: int = 0) -> int:
    """Starts push_pull(tensor); leave `tensor` unchanged until synchronize(handle). Lower priority values go first.

    All ranks use the same name, size and type. One push_pull per name at a time. Without a name one is made from type
    and size; then all ranks must start their unnamed push_pulls in the same order, from one thread.
    """
    return exchange.push_pull_async(
        process.current(), TORCH, tensor, average=average, name=name, priority=priority, in_place=False
    )


def push_pull_async_inplace(
    tensor: torch.Tensor, average: bool = True, name: Optional[str] = None, priority: int = 0
) -> int:
    """Starts push_pull_inplace(tensor); neither read nor write `tensor` until synchronize(handle)."""
    handle = exchange.push_pull_async(
        process.current(), TORCH, tensor, average=average, name=name, priority=priority, in_place=True
    )
    _tell_autograd_of_change(tensor)
    return handle


def accumulate(tensor: torch.Tensor, name: str, staleness: Optional[int] = None, priority: int = 0) -> torch.Tensor:
    """Adds `tensor` to the running sum of this name, which starts from zero, and returns it as it is then. Blocks.

    Waits for no other worker, or with a staleness for those that are more than so many calls behind. float32, int32.
    """
    return synchronize(accumulate_async(tensor, name, staleness, priority))


def accumulate_async(tensor: torch.Tensor, name: str, staleness: Optional[int] = None, priority: int = 0) -> int:
    """Starts accumulate(tensor); leave `tensor` unchanged until synchronize(handle). Lower priority values go first."""
    return exchange.push_pull_async(
        process.current(),
        TORCH,
        tensor,
        average=False,
        name=name,
        priority=priority,
        in_place=False,
        accumulate=True,
        staleness=staleness,
    )


def register_memory(tensor: torch.Tensor) -> None:
    """Says that `tensor` is pushed from again and again: where RDMA carries it, no copy of it is made.

    It is kept, with its memory, until unregister_memory(tensor) or shutdown(). Results are the same with and without.
    """
    exchange.register_memory(process.current(), TORCH, tensor)


def unregister_memory(tensor: torch.Tensor) -> None:
    """Of what register_memory() was given. FailedPreconditionError while push_pulls of it are in flight."""
    exchange.unregister_memory(process.current(), TORCH, tensor)


def poll(handle: int) -> bool:
    """True when synchronize(handle) would not block."""
    return process.current().poll(handle)


def synchronize(handle: int) -> torch.Tensor:
    """Waits for an asynchronous push_pull and returns its tensor; once per handle."""
    return process.current().synchronize(handle)


def _tell_autograd_of_change(tensor: torch.Tensor) -> None:
    """Makes backward fail for graphs that have saved the tensor's value, as after any change in place."""
    if not tensor.is_inference():
        torch.as_strided(tensor.detach(), (0,), (1,)).zero_()  # changes none of its elements but the version counter
