"""Compression with the names of byteps.torch.compression."""

from __future__ import annotations

from typing import Any, NoReturn

from gleaner.torch.compression import Compressor, FP16Compressor, NoneCompressor


class _Advises(type):
    """The class of Compression. Its error for an unknown compressor names the compressors that there are."""

    def __getattr__(cls, name: str) -> NoReturn:
        raise AttributeError(
            f"there is no compressor {name}: use Compression.fp16, Compression.none or an object with compress() and "
            "decompress(). BytePS's compressors for MXNet (onebit, topk, randomk, dithering) are one_bit, top_k, "
            "random_k and dithering of gleaner.torch.Compression"
        )


class Compression(metaclass=_Advises):
    """The compressors `none` and `fp16` of gleaner.torch.Compression."""

    none = NoneCompressor
    fp16 = FP16Compressor


def check_no_parameters(compression_params: Any) -> None:
    """Raises TypeError if the program passes the parameters of BytePS's gradient compression for MXNet."""
    if compression_params:
        raise TypeError(
            f"compression_params {compression_params!r} is for BytePS's MXNet trainer: leave it out, and pass "
            "compression=Compression.fp16 to send half the bytes"
        )


__all__ = ["Compression", "Compressor", "FP16Compressor", "NoneCompressor"]
