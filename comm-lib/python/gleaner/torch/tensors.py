"""Gives gleaner.exchange access to PyTorch tensors.

A tensor is lazy if its memory does not hold its elements: PyTorch negates or conjugates the elements when it reads them
(`z.conj()`, `z.conj().imag`), or knows that all are zero. Such a tensor is sent from a copy.
"""

from __future__ import annotations

import io
import pickle
from typing import Any, Optional

import numpy
import torch

from gleaner.session import DataType

DATA_TYPES = {
    torch.float32: DataType.FLOAT32,
    torch.float64: DataType.FLOAT64,
    torch.float16: DataType.FLOAT16,
    torch.bfloat16: DataType.BFLOAT16,
    torch.int32: DataType.INT32,
}


class TorchTensors:
    """Implements exchange.Arrays for dense tensors in the memory of the CPU or of a GPU."""

    def data_type(self, tensor: torch.Tensor) -> DataType:
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"expected a torch.Tensor, not {type(tensor).__name__}")
        if tensor.device.type not in ("cpu", "cuda") or (tensor.is_cuda and torch.version.cuda is None):
            kind = "ROCm" if tensor.is_cuda else tensor.device.type
            raise TypeError(f"{kind} tensors are not supported; pass tensor.cpu()")
        if tensor.layout is not torch.strided:
            raise TypeError(f"{tensor.layout} tensors are not supported; pass tensor.to_dense()")
        found = DATA_TYPES.get(tensor.dtype)
        if found is None:
            raise TypeError(f"cannot sum tensors of {tensor.dtype}; {', '.join(map(str, DATA_TYPES))} can be summed")
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

    def gpu(self, source: torch.Tensor, output: torch.Tensor) -> Optional[CudaMemory]:
        return CudaMemory(source, output) if source.is_cuda else None


class CudaMemory:
    """Implements session.GpuMemory: the tensors of one request, on the current stream of each thread that uses them."""

    def __init__(self, *tensors: torch.Tensor) -> None:
        self._tensors = tensors
        self._device = tensors[0].device
        self._started_on = torch.cuda.current_stream(self._device)
        self.ordinal = self._device.index

    def stream(self) -> int:
        return torch.cuda.current_stream(self._device).cuda_stream

    def waited(self) -> None:
        """Keeps the memory for what the current stream waits for, also if the tensors are freed at once.

        PyTorch's allocator gives memory again to the stream for which it was allocated, and asks for no other stream.
        """
        stream = torch.cuda.current_stream(self._device)
        if stream != self._started_on:
            for tensor in self._tensors:
                tensor.record_stream(stream)


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
