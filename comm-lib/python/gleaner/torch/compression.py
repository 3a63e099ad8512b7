"""Compression of gradients on the network, with the names that Horovod and BytePS use.

A compressor is an object, or a class with static methods, that has compress() and decompress() of Compressor. Ranks sum
compressed tensors, so the sum of compressed tensors must be the compressed sum, up to rounding.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch


class Compressor(Protocol):
    """Compresses tensors before they are sent. All ranks must use the same compressor."""

    def compress(self, tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """Returns the tensor to send, and the second argument of decompress().

        The tensor to send has a type that can be summed, and its size and type depend only on those of `tensor`. It is
        `tensor` itself or shares no memory with it, since the average overwrites it.
        """

    def decompress(self, tensor: torch.Tensor, context: Any) -> torch.Tensor:
        """Returns the average of the tensors that ranks sent, `tensor`, with the shape and type of the original."""


class NoneCompressor:
    """Sends tensors as they are."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, None]:
        return tensor, None

    @staticmethod
    def decompress(tensor: torch.Tensor, context: None) -> torch.Tensor:
        return tensor


class FP16Compressor:
    """Sends tensors of a floating type as float16. Magnitudes above 65504 become infinite."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.dtype]:
        return tensor.to(torch.float16) if tensor.is_floating_point() else tensor, tensor.dtype

    @staticmethod
    def decompress(tensor: torch.Tensor, context: torch.dtype) -> torch.Tensor:
        return tensor.to(context)


class Compression:
    """The compressors of this package: `none` sends tensors as they are, `fp16` sends them as float16."""

    none = NoneCompressor
    fp16 = FP16Compressor


def check_compression(compression: Any) -> None:
    """Raises TypeError if `compression` has no compress() or no decompress()."""
    if not all(callable(getattr(compression, name, None)) for name in ("compress", "decompress")):
        raise TypeError(
            "compression takes Compression.none, Compression.fp16 or an object with compress() and decompress(), not "
            f"{compression!r}"
        )
