"""A fingerprint of parameters, by which ranks notice that they do not begin with the same values."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import torch

from gleaner.torch.tensors import bytes_of


def fingerprint_of(parameters: Iterable[torch.Tensor]) -> int:
    """Returns a number from 1 to 2**31 - 1. The same bits give the same number, and other bits most likely another.

    Ignores parameters that are not dense, which are not averaged. Waits for the GPU that has parameters.
    """
    crc = 0
    for parameter in parameters:
        if parameter.numel() > 0 and parameter.layout is torch.strided and parameter.device.type != "meta":
            crc = zlib.crc32(bytes_of(parameter), crc)
    return (crc & 0x7FFFFFFF) or 1
