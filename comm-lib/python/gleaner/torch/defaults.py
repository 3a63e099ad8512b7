"""Defaults of the job: environment variables that choose compression and fusion where the script chooses none.

A platform sets GLEANER_COMPRESSION and GLEANER_FUSION_BYTES for all ranks of a job, as a TrainingJob does. A value that
the script passes always wins; Compression.none and fusion_bytes=None are such values.
"""

from __future__ import annotations

import enum
import os
from typing import Union

from gleaner.errors import InvalidArgumentError
from gleaner.torch.compression import Compression, Compressor
from gleaner.torch.packs import AUTO, is_threshold

_COMPRESSORS: dict[str, Compressor] = {
    "none": Compression.none,
    "fp16": Compression.fp16,
    "bf16": Compression.bf16,
    "int8": Compression.int8,
    "dithering": Compression.dithering,
    "onebit": Compression.one_bit,
    "topk": Compression.top_k,
    "randomk": Compression.random_k,
}


class Default(enum.Enum):
    """The value of an argument that the script leaves out: the environment of the job decides."""

    OF_JOB = "of the job"


def chosen_compression(compression: Union[Compressor, Default]) -> Compressor:
    """Returns `compression`, or for Default.OF_JOB the compressor that GLEANER_COMPRESSION names.

    Without the variable, or if it is empty, gradients are sent as they are.

    Raises:
        InvalidArgumentError: GLEANER_COMPRESSION names no compressor.
    """
    if compression is not Default.OF_JOB:
        return compression
    name = os.environ.get("GLEANER_COMPRESSION") or "none"
    if name not in _COMPRESSORS:
        raise InvalidArgumentError(f"GLEANER_COMPRESSION={name!r}: expected one of {', '.join(_COMPRESSORS)}")
    return _COMPRESSORS[name]


def chosen_fusion_bytes(fusion_bytes: Union[float, str, Default, None]) -> Union[float, str, None]:
    """Returns `fusion_bytes`, or for Default.OF_JOB the number of bytes in GLEANER_FUSION_BYTES, or "auto".

    Without the variable, or if it is empty, gradients are not fused (None).

    Raises:
        InvalidArgumentError: GLEANER_FUSION_BYTES is neither a whole number above 0, nor inf or auto.
    """
    if fusion_bytes is not Default.OF_JOB:
        return fusion_bytes
    text = os.environ.get("GLEANER_FUSION_BYTES")
    if not text:
        return None
    if text == AUTO:
        return AUTO
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not is_threshold(number):
        raise InvalidArgumentError(
            f"GLEANER_FUSION_BYTES={text!r}: expected a whole number of bytes above 0, such as 4194304, auto, or inf "
            "for one exchange after the backward pass; unset it for no fusion"
        )
    return number
