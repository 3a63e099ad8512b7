"""The memory of tensors as calls of groups take it: bytes of the host that lie one after the other.

A tensor that is on a GPU, has gaps, or is lazy is copied to such memory, or back from it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from gleaner.errors import InvalidArgumentError
from gleaner.groups import NOTHING, Block
from gleaner.torch.tensors import is_lazy, resolved


def check(tensor: torch.Tensor) -> None:
    """Raises an error if collectives can't take the tensor."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"expected a torch.Tensor, not {type(tensor).__name__}")
    if tensor.layout is not torch.strided:
        raise InvalidArgumentError(f"{tensor.layout} tensors are not supported; pass tensor.to_dense()")
    if tensor.device.type not in ("cpu", "cuda"):
        raise InvalidArgumentError(f"tensors on {tensor.device.type} are not supported; pass tensor.cpu()")


def is_plain(tensor: torch.Tensor) -> bool:
    """Returns whether the tensor is memory of the host without gaps."""
    return not tensor.is_cuda and tensor.is_contiguous() and not is_lazy(tensor)


def given(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the elements of a tensor in memory of the host: the tensor's own, or a copy. Waits for its GPU."""
    return tensor.detach() if is_plain(tensor) else resolved(tensor).cpu().contiguous()


def flat(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Returns the elements of tensors of one type, one after the other, in memory of the host."""
    return torch.cat([given(tensor).reshape(-1) for tensor in tensors]) if tensors else torch.empty(0)


def room(tensor: torch.Tensor) -> torch.Tensor:
    """Returns memory of the host for new elements of a tensor: its own where it can take them."""
    if is_plain(tensor):
        return tensor.detach()
    settle(tensor)
    return torch.empty(tensor.shape, dtype=tensor.dtype)


def settle(tensor: torch.Tensor) -> None:
    """Waits for what the calling thread has queued on the GPU of the tensor, because another thread may write it."""
    if tensor.is_cuda:
        torch.cuda.current_stream(tensor.device).synchronize()


def take_over(tensor: torch.Tensor, result: torch.Tensor) -> None:
    """Copies what has come to room(tensor) into the tensor, unless it is there."""
    if result.data_ptr() != tensor.data_ptr() or tensor.is_cuda:
        with torch.no_grad():
            tensor.copy_(result.view(tensor.shape))


def block(tensor: torch.Tensor) -> Block:
    """Returns the memory of a tensor of the host without gaps."""
    size = tensor.numel() * tensor.element_size()
    return Block(tensor.data_ptr(), size, tensor) if size else NOTHING
