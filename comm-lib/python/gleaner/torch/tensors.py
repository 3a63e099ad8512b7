"""Gives gleaner.exchange access to PyTorch tensors.

A tensor is lazy if its memory does not hold its elements: PyTorch negates or conjugates the elements when it reads them
(`z.conj()`, `z.conj().imag`), or knows that all are zero. Such a tensor is sent from a copy.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy
import torch

from gleaner.session import DataType

_DATA_TYPES = {
    torch.float32: DataType.FLOAT32,
    torch.float64: DataType.FLOAT64,
    torch.float16: DataType.FLOAT16,
    torch.bfloat16: DataType.BFLOAT16,
    torch.int32: DataType.INT32,
}


class TorchTensors:
    """Implements exchange.Arrays for dense tensors in CPU memory."""

    def data_type(self, tensor: torch.Tensor) -> DataType:
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"expected a torch.Tensor, not {type(tensor).__name__}")
        if tensor.device.type != "cpu":
            raise TypeError(f"{tensor.device.type} tensors are not supported by this build; pass tensor.cpu()")
        if tensor.layout is not torch.strided:
            raise TypeError(f"{tensor.layout} tensors are not supported; pass tensor.to_dense()")
        found = _DATA_TYPES.get(tensor.dtype)
        if found is None:
            raise TypeError(f"cannot sum tensors of {tensor.dtype}; {', '.join(map(str, _DATA_TYPES))} can be summed")
        return found

    def elements(self, tensor: torch.Tensor) -> int:
        return tensor.numel()

    def contiguous(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor if tensor.is_contiguous() and not is_lazy(tensor) else resolved(tensor).contiguous()

    def empty_like(self, tensor: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(tensor, memory_format=torch.contiguous_format)

    def hold(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach()  # the user may assign other memory to tensor.data; the detached tensor keeps this one

    def address(self, tensor: torch.Tensor) -> int:
        return tensor.data_ptr()

    def copy(self, target: torch.Tensor, source: torch.Tensor) -> None:
        with torch.no_grad():
            target.copy_(source)


TORCH = TorchTensors()


def is_lazy(tensor: torch.Tensor) -> bool:
    """Returns whether the memory of `tensor` does not hold its elements."""
    return tensor.is_neg() or tensor.is_conj() or tensor._is_zerotensor()


def resolved(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a tensor with the same elements that is not lazy: a copy of a lazy tensor, or else an alias."""
    return tensor.detach().clone() if is_lazy(tensor) else tensor.detach()


def check_writable(tensor: torch.Tensor) -> None:
    """Raises TypeError if PyTorch cannot write into `tensor`."""
    if tensor._is_zerotensor():
        raise TypeError("PyTorch cannot write into this tensor, which has no memory for its zeros: pass tensor.clone()")


def bytes_of(tensor: torch.Tensor) -> numpy.ndarray:
    """Returns the bytes of `tensor`, uint8. It must not be empty: PyTorch 1.13 cannot view an empty tensor as bytes."""
    dense = resolved(tensor).cpu().contiguous()
    # A tensor with one element is contiguous with any stride, but PyTorch views only stride 1 as bytes.
    return dense.as_strided((dense.numel(),), (1,)).view(torch.uint8).numpy()


class _Pickler(pickle.Pickler):
    """Pickles lazy tensors as their elements are. PyTorch 1.13 forgets that they are negated or conjugated."""

    def reducer_override(self, value: Any) -> Any:
        if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.layout is not torch.strided:
            return NotImplemented
        if not is_lazy(value):
            return NotImplemented
        plain = resolved(value)
        if isinstance(value, torch.nn.Parameter):
            return torch.nn.Parameter, (plain, value.requires_grad)
        return plain.requires_grad_(value.requires_grad).__reduce_ex__(pickle.DEFAULT_PROTOCOL)


def pickled(value: Any) -> bytes:
    """Returns the pickle of an object that may hold tensors."""
    data = io.BytesIO()
    _Pickler(data).dump(value)
    return data.getvalue()
