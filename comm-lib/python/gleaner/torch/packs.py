"""Decides which gradients are sent together, as one tensor. Source: GradientFlow §3.1 (lazy all-reduce).

A pack is a list of parameters whose gradients are sent as one tensor. Example: `fusion_bytes` is 100, and backward()
makes gradients of 80, 40, 400, 60, 30, 20 and 90 bytes, of one type and on one device:

    pack 0: 80, 40        closed, as it exceeds 100 bytes
    alone:  400           more than 100 bytes, so it is not copied into a pack
    pack 1: 60, 30, 20
    alone:  90            a pack of one gradient is a tensor of its own
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional

import torch

from gleaner.errors import InvalidArgumentError


def check_fusion_bytes(fusion_bytes: Any) -> None:
    """Raises an error unless `fusion_bytes` is None or a number above 0.

    Raises:
        TypeError: It is no number.
        InvalidArgumentError: It is 0, negative or NaN.
    """
    advice = "pass a number of bytes above 0, math.inf for one exchange after the backward pass, or None for no fusion"
    if fusion_bytes is None:
        return
    if isinstance(fusion_bytes, (bool, str, bytes)) or not hasattr(fusion_bytes, "__float__"):
        raise TypeError(f"fusion_bytes must not be {fusion_bytes!r}: {advice}")
    if not float(fusion_bytes) > 0:
        raise InvalidArgumentError(f"fusion_bytes must not be {fusion_bytes!r}: {advice}")


def strides_of(parameter: torch.Tensor) -> tuple[int, ...]:
    """Returns the strides in elements of a gradient without gaps that has the memory format of `parameter`.

    Optimizers are slower if a gradient has another format than its parameter, as channels_last.
    """
    return torch.empty_like(parameter, device="meta", memory_format=torch.preserve_format).stride()


@dataclass(frozen=True)
class Fusion:
    """The packs of one optimizer, which depend only on sizes, types, memory formats and `fusion_bytes`.

    Attributes:
        fusion_bytes: Threshold θ in bytes; 0: no gradients are fused.
        share: Sparsity.share; -1: all chunks are sent.
        packs: Lists of places in the sequence of parameters, in the order in which the packs are closed. The parameters
            of a pack have one type and one device.
        fingerprint: From 1 to 2**31 - 1; other packs most likely have another number. 0: there are no packs.
    """

    fusion_bytes: float
    packs: tuple[tuple[int, ...], ...]
    fingerprint: int
    share: float = -1

    @classmethod
    def of(cls, parameters: Sequence[torch.Tensor], fusion_bytes: Optional[float]) -> Fusion:
        """Returns the packs of `parameters`, which are in the order in which backward() makes their gradients.

        A pack is closed as soon as its bytes exceed `fusion_bytes`. A parameter with more bytes is in no pack, nor is a
        parameter that requires no gradient now.
        """
        if fusion_bytes is None:
            return cls(0, (), 0)
        closed: list[list[int]] = []
        open_packs: dict[Any, list[int]] = {}
        open_bytes: dict[Any, int] = {}
        for place, parameter in enumerate(parameters):
            size = parameter.numel() * parameter.element_size()
            if not parameter.requires_grad or size > fusion_bytes:
                continue
            kind = parameter.dtype, parameter.device
            open_packs.setdefault(kind, []).append(place)
            open_bytes[kind] = open_bytes.get(kind, 0) + size
            if open_bytes[kind] > fusion_bytes:
                closed.append(open_packs.pop(kind))
                del open_bytes[kind]
        packs = tuple(tuple(pack) for pack in [*closed, *open_packs.values()] if len(pack) > 1)
        return cls(float(fusion_bytes), packs, _fingerprint(parameters, packs))


def _fingerprint(parameters: Sequence[torch.Tensor], packs: tuple[tuple[int, ...], ...]) -> int:
    if not packs:
        return 0
    members = [parameters[place] for pack in packs for place in pack]
    formats = [(each.numel(), strides_of(each), str(each.dtype)) for each in members]
    return (zlib.crc32(repr((packs, formats)).encode()) & 0x7FFFFFFF) or 1


def told(fusion_bytes: float) -> str:
    """Returns the `fusion_bytes` of a Fusion as a program passes it to DistributedOptimizer()."""
    if fusion_bytes == 0:
        return "None"
    return "math.inf" if math.isinf(fusion_bytes) else f"{fusion_bytes:.15g}"
