"""push_pull and accumulate for tensors, with the names that Horovod and BytePS use.

The package gleaner describes requests and threads, which are the same here. gleaner.exchange has the code.
"""

from __future__ import annotations

from typing import Optional

import torch

from gleaner import exchange, process
from gleaner.exchange import AccumulateOptions, PushPullOptions
from gleaner.torch.tensors import TORCH, check_writable


def declare(tensor: torch.Tensor, name: str, priority: int = 0) -> None:
    """Declares a tensor before its first push_pull. Optional: the first push_pull of a name declares its tensor, too.

    A job whose ranks declare all tensors before the first push_pull needs only one plan for them. Does not block, and
    may be called from several threads. Every rank must declare the tensor. If ranks differ in its size or type, the
    session ends with an InvalidArgumentError at the first push_pull.

    Args:
        tensor: Dense tensor; only its size and type matter.
        name: Name of the tensor, the same on all ranks; 1 to 4096 bytes.
        priority: Tensors with lower values are sent first; -2**31 to 2**31 - 1. All ranks use the value of rank 0.

    Raises:
        TypeError: `tensor` is not a dense tensor of a type that can be summed.
        InvalidArgumentError: `name` or `priority` is out of range, or this rank has declared `name` differently.
        FailedPreconditionError: There is no session.
    """
    exchange.declare(process.current(), TORCH, tensor, name, priority)


def push_pull(
    tensor: torch.Tensor, average: bool = True, name: Optional[str] = None, priority: int = 0
) -> torch.Tensor:
    """Returns the average or the sum of `tensor` over all ranks, with the same bits on every rank. Collective; blocks.

    Args:
        tensor: Dense tensor of float32, float64, float16, bfloat16 or int32, of any shape, with the same number of
            elements and the same type on all ranks.
        average: True: the average; False: the sum. The same on all ranks.
        name: Name of the tensor, as in gleaner.push_pull_async().
        priority: As in gleaner.push_pull_async().

    Returns:
        A new contiguous tensor with the shape and type of `tensor`. No gradient flows through it.

    Raises:
        TypeError: As in push_pull_async().
        GleanerError: As in gleaner.push_pull().
    """
    return synchronize(push_pull_async(tensor, average, name, priority))


def push_pull_inplace(
    tensor: torch.Tensor, average: bool = True, name: Optional[str] = None, priority: int = 0
) -> torch.Tensor:
    """Overwrites `tensor` with its average or its sum over all ranks. Collective; blocks.

    Autograd treats the call as an in-place operation on `tensor`.

    Args:
        tensor: As in push_pull_async_inplace().
        average: As in gleaner.push_pull_async().
        name: As in gleaner.push_pull_async().
        priority: As in gleaner.push_pull_async().

    Returns:
        `tensor` itself.

    Raises:
        TypeError: As in push_pull_async().
        GleanerError: As in gleaner.push_pull().
    """
    return synchronize(push_pull_async_inplace(tensor, average, name, priority))


def push_pull_async(tensor: torch.Tensor, average: bool = True, name: Optional[str] = None, priority: int = 0) -> int:
    """Starts push_pull(tensor) and returns. Collective: every rank must start the same requests.

    Args:
        tensor: Dense tensor of float32, float64, float16, bfloat16 or int32, of any shape, with the same number of
            elements and the same type on all ranks. It must stay unchanged until synchronize().
        average: As in gleaner.push_pull_async().
        name: As in gleaner.push_pull_async().
        priority: As in gleaner.push_pull_async().

    Returns:
        A handle for poll() and synchronize().

    Raises:
        TypeError: `tensor` is not a dense tensor of one of these types, `average` is not a bool, or `average` is
            True and `tensor` is int32.
        GleanerError: As in gleaner.push_pull_async().
    """
    return exchange.push_pull_async(process.current(), TORCH, tensor, PushPullOptions(average, name, priority))


def push_pull_async_inplace(
    tensor: torch.Tensor, average: bool = True, name: Optional[str] = None, priority: int = 0
) -> int:
    """Starts push_pull_inplace(tensor) and returns. Collective: every rank must start the same requests.

    Args:
        tensor: As in push_pull_async(). The program must neither read nor write it until synchronize().
        average: As in gleaner.push_pull_async().
        name: As in gleaner.push_pull_async().
        priority: As in gleaner.push_pull_async().

    Returns:
        A handle for poll() and synchronize(), whose result is `tensor` itself.

    Raises:
        TypeError: As in push_pull_async().
        GleanerError: As in gleaner.push_pull_async().
    """
    if isinstance(tensor, torch.Tensor):
        check_writable(tensor)
    options = PushPullOptions(average, name, priority, in_place=True)
    handle = exchange.push_pull_async(process.current(), TORCH, tensor, options)
    _tell_autograd_of_change(tensor)
    return handle


def accumulate(tensor: torch.Tensor, name: str, staleness: Optional[int] = None, priority: int = 0) -> torch.Tensor:
    """Adds `tensor` to the running sum of this name and returns the new sum, as gleaner.accumulate(). Blocks.

    Args:
        tensor: As in accumulate_async().
        name: As in gleaner.accumulate_async().
        staleness: As in gleaner.accumulate_async().
        priority: As in gleaner.push_pull_async().

    Returns:
        A new contiguous tensor with the shape and type of `tensor`. No gradient flows through it.

    Raises:
        TypeError: As in accumulate_async().
        GleanerError: As in gleaner.accumulate().
    """
    return synchronize(accumulate_async(tensor, name, staleness, priority))


def accumulate_async(tensor: torch.Tensor, name: str, staleness: Optional[int] = None, priority: int = 0) -> int:
    """Starts accumulate(tensor) and returns, as gleaner.accumulate_async().

    Args:
        tensor: Dense tensor of float32 or int32 of any shape, with the same number of elements and the same type on
            all ranks. It must stay unchanged until synchronize().
        name: As in gleaner.accumulate_async().
        staleness: As in gleaner.accumulate_async().
        priority: As in gleaner.push_pull_async().

    Returns:
        A handle for poll() and synchronize().

    Raises:
        TypeError: `tensor` is not a dense tensor of a type that can be summed.
        GleanerError: As in gleaner.accumulate_async().
    """
    options = AccumulateOptions(name, staleness, priority)
    return exchange.accumulate_async(process.current(), TORCH, tensor, options)


def register_memory(tensor: torch.Tensor) -> None:
    """Registers the memory of a tensor that is sent repeatedly, as gleaner.register_memory().

    Args:
        tensor: Dense contiguous tensor. The package keeps this memory even if the program assigns other memory to
            tensor.data.

    Raises:
        TypeError: `tensor` is not a dense tensor of a type that can be summed.
        InvalidArgumentError: `tensor` is empty or not contiguous, or a part of its memory is registered already.
        GleanerError: There is no session, or it has failed; see gleaner.errors.
    """
    exchange.register_memory(process.current(), TORCH, tensor)


def unregister_memory(tensor: torch.Tensor) -> None:
    """Unregisters memory that was passed to register_memory(), as gleaner.unregister_memory().

    Args:
        tensor: A tensor that begins at the same address as the tensor that was registered.

    Raises:
        GleanerError: As in gleaner.unregister_memory().
    """
    exchange.unregister_memory(process.current(), TORCH, tensor)


def synchronize(handle: int) -> torch.Tensor:
    """Waits for a request and returns its result. Call it once for each handle, from any thread.

    Args:
        handle: Handle of push_pull_async(), push_pull_async_inplace() or accumulate_async().

    Returns:
        A new tensor, or, for a handle of push_pull_async_inplace(), the tensor that was passed to it.

    Raises:
        GleanerError: As in gleaner.synchronize().
    """
    return process.current().synchronize(handle)


def _tell_autograd_of_change(tensor: torch.Tensor) -> None:
    """Makes backward() fail for graphs that have saved the tensor's value, as after any in-place operation."""
    if not tensor.is_inference():
        torch.as_strided(tensor.detach(), (0,), (1,)).zero_()  # changes no element, only the version counter
