"""Compression of gradients on the network, with the names that Horovod and BytePS use.

A compressor is an object, or a class with static methods, that has compress() and decompress() of Compressor. Ranks sum
compressed tensors, so the sum of compressed tensors must be the compressed sum, up to rounding.

The compressors of this package have an attribute `sent_as` in addition. The library then converts float32 gradients
itself, partition by partition while others are on their way, and calls compress() for other gradients alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Optional, Protocol

import torch

from gleaner.codec import BLOCK_ELEMENTS, Codec, Method, SentAs
from gleaner.session import DataType


class Compressor(Protocol):
    """Compresses tensors before they are sent. All ranks must use the same compressor."""

    def compress(self, tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """Returns the tensor to send, and the second argument of decompress().

        The tensor to send has a type that can be summed, and its size and type depend only on those of `tensor`. It is
        `tensor` itself or shares no memory with it, since the average overwrites it.
        """

    def decompress(self, tensor: torch.Tensor, context: Any) -> torch.Tensor:
        """Returns the average of the tensors that ranks sent, `tensor`, with the shape and type of the original."""


def may_encode(compression: Any, gradient: torch.Tensor, in_packs: bool) -> bool:
    """Returns whether `compression` may send a gradient in blocks, on its own or else in a pack."""
    is_small = gradient.numel() < BLOCK_ELEMENTS and not in_packs
    return isinstance(getattr(compression, "sent_as", None), Codec) and gradient.dtype == torch.float32 and not is_small


def sent_as(compression: Any, tensor: torch.Tensor) -> Optional[SentAs]:
    """Returns how the library sends `tensor`; None: compress() makes the tensor to send."""
    how = getattr(compression, "sent_as", None) if tensor.dtype == torch.float32 else None
    return None if isinstance(how, Codec) and tensor.numel() < BLOCK_ELEMENTS else how


def compressed(compression: Compressor, tensor: torch.Tensor) -> tuple[torch.Tensor, Any, Optional[SentAs]]:
    """Returns the tensor to send, the second argument of decompress(), and what sent_as() returns."""
    by_library = sent_as(compression, tensor)
    return (tensor, None, by_library) if by_library is not None else (*compression.compress(tensor), None)


class NoneCompressor:
    """Sends tensors as they are."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, None]:
        return tensor, None

    @staticmethod
    def decompress(tensor: torch.Tensor, context: None) -> torch.Tensor:
        return tensor


class _Narrow:
    """Sends tensors of a floating type in a type of 16 bits, with one rounding of each contribution and of the sum."""

    sent_as: DataType
    _dtype: torch.dtype

    @classmethod
    def compress(cls, tensor: torch.Tensor) -> tuple[torch.Tensor, torch.dtype]:
        return tensor.to(cls._dtype) if tensor.is_floating_point() else tensor, tensor.dtype

    @staticmethod
    def decompress(tensor: torch.Tensor, context: torch.dtype) -> torch.Tensor:
        return tensor.to(context)


class FP16Compressor(_Narrow):
    """Sends tensors of a floating type as float16: 11 significant bits. Magnitudes from 65520 on become infinite."""

    sent_as = DataType.FLOAT16
    _dtype = torch.float16


class BF16Compressor(_Narrow):
    """Sends tensors of a floating type as bfloat16: 8 significant bits, with the range of float32."""

    sent_as = DataType.BFLOAT16
    _dtype = torch.bfloat16


class BlockCompressor(NoneCompressor):
    """Sends tensors of float32 in blocks of 1,024 elements; the library does it. Other tensors are sent as they are.

    So are tensors with fewer elements than a block. A call returns the same compressor with other options:
    `Compression.top_k(kept=32, momentum=0.9)`.

    Attributes:
        sent_as: The codec.
    """

    def __init__(self, codec: Codec) -> None:
        self.sent_as = codec

    def __call__(self, **options: Any) -> BlockCompressor:
        """Returns this compressor with other values of the attributes of Codec, apart from `method`.

        Raises:
            TypeError: Codec has no such attribute.
            InvalidArgumentError: A value is out of range.
        """
        return BlockCompressor(replace(self.sent_as, **options))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BlockCompressor) and self.sent_as == other.sent_as

    def __hash__(self) -> int:
        return hash(self.sent_as)

    def __repr__(self) -> str:
        return f"BlockCompressor({self.sent_as})"


class Compression:
    """The compressors of this package (docs/compression.md).

    `none` sends tensors as they are, `fp16` as float16, `bf16` as bfloat16. The others send blocks and take options in
    a call, for example Compression.top_k(kept=32): `int8` has a byte for each element, `dithering` 4 bits, `one_bit`
    the sign; `top_k` sends the elements of the largest magnitude, `random_k` elements at random places.
    """

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor
    int8 = BlockCompressor(Codec(Method.INT8))
    dithering = BlockCompressor(Codec(Method.INT4))
    one_bit = BlockCompressor(Codec(Method.SIGN))
    top_k = BlockCompressor(Codec(Method.TOP_K, kept=16))
    random_k = BlockCompressor(Codec(Method.RANDOM_K, kept=16))


def check_compression(compression: Any) -> None:
    """Raises TypeError if `compression` has no compress() or no decompress()."""
    if not all(callable(getattr(compression, name, None)) for name in ("compress", "decompress")):
        raise TypeError(
            "compression takes a compressor of gln.Compression, such as Compression.fp16, or an object with compress() "
            "and decompress(), not "
            f"{compression!r}"
        )
