"""Gives gleaner.exchange access to PyTorch tensors."""

from __future__ import annotations

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
        return tensor if tensor.is_contiguous() else tensor.detach().contiguous()

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


def bytes_of(tensor: torch.Tensor) -> numpy.ndarray:
    """Returns the bytes of `tensor`, uint8. It must not be empty: PyTorch 1.13 cannot view an empty tensor as bytes."""
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
