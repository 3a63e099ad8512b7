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
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Union

import torch

from gleaner.errors import InvalidArgumentError

AUTO = "auto"  # `fusion_bytes` that pack_tuning.py chooses in the first steps
_UNTUNED = -1.0  # Fusion.fusion_bytes before the choice


def check_fusion_bytes(fusion_bytes: Any) -> None:
    """Raises an error unless `fusion_bytes` is None, "auto" or a threshold as in is_threshold().

    Raises:
        TypeError: It is no number.
        InvalidArgumentError: It is 0, negative, NaN or a fraction.
    """
    advice = (
        "pass a whole number of bytes above 0, 'auto', math.inf for one exchange after the backward pass, or None for "
        "no fusion"
    )
    if fusion_bytes is None or (isinstance(fusion_bytes, str) and fusion_bytes == AUTO):
        return
    if isinstance(fusion_bytes, (bool, str, bytes)) or not hasattr(fusion_bytes, "__float__"):
        raise TypeError(f"fusion_bytes must not be {fusion_bytes!r}: {advice}")
    if not is_threshold(float(fusion_bytes)):
        raise InvalidArgumentError(f"fusion_bytes must not be {fusion_bytes!r}: {advice}")


def is_threshold(number: float) -> bool:
    """Returns whether `number` is a whole number of bytes above 0, or infinite."""
    return number > 0 and (math.isinf(number) or number.is_integer())


def strides_of(parameter: torch.Tensor) -> tuple[int, ...]:
    """Returns the strides in elements of a gradient without gaps that has the memory format of `parameter`.

    Optimizers are slower if a gradient has another format than its parameter, as channels_last.
    """
    return torch.empty_like(parameter, device="meta", memory_format=torch.preserve_format).stride()


def packs_of(sizes: Sequence[int], kinds: Sequence[Hashable], fusion_bytes: float) -> tuple[tuple[int, ...], ...]:
    """Returns the packs of gradients as lists of their numbers, in the order in which the packs are closed.

    A pack is closed as soon as its bytes exceed `fusion_bytes`. A gradient with more bytes is in no pack.

    Args:
        sizes: Bytes of each gradient, in the order in which backward() makes gradients.
        kinds: Type and device of each gradient; the gradients of a pack have one kind.
        fusion_bytes: Threshold θ in bytes.
    """
    closed: list[list[int]] = []
    open_packs: dict[Hashable, list[int]] = {}
    open_bytes: dict[Hashable, int] = {}
    for number, (size, kind) in enumerate(zip(sizes, kinds)):
        if size > fusion_bytes:
            continue
        open_packs.setdefault(kind, []).append(number)
        open_bytes[kind] = open_bytes.get(kind, 0) + size
        if open_bytes[kind] > fusion_bytes:
            closed.append(open_packs.pop(kind))
            del open_bytes[kind]
    return tuple(tuple(pack) for pack in [*closed, *open_packs.values()] if len(pack) > 1)


@dataclass(frozen=True)
class Fusion:
    """The packs of one optimizer, which depend only on sizes, types, memory formats and `fusion_bytes`.

    Attributes:
        fusion_bytes: Threshold θ in bytes; 0: no gradients are fused; -1: it is "auto", and not chosen yet.
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
    def of(cls, parameters: Sequence[torch.Tensor], fusion_bytes: Union[float, str, None]) -> Fusion:
        """Returns the packs of `parameters`, which are in the order in which backward() makes their gradients.

        A parameter that requires no gradient now is in no pack. Before "auto" has chosen there are no packs, but a
        fingerprint, since all ranks have to take part in the choice.
        """
        if fusion_bytes is None:
            return cls(0, (), 0)
        if fusion_bytes == AUTO:
            return cls(_UNTUNED, (), zlib.crc32(AUTO.encode()) & 0x7FFFFFFF)
        places = [place for place, each in enumerate(parameters) if each.requires_grad]
        trained = [parameters[place] for place in places]
        packs = packs_of([size_of(each) for each in trained], [kind_of(each) for each in trained], fusion_bytes)
        packs = tuple(tuple(places[number] for number in pack) for pack in packs)
        return cls(float(fusion_bytes), packs, _fingerprint(parameters, packs))


def size_of(tensor: torch.Tensor) -> int:
    """Returns the bytes of all elements."""
    return tensor.numel() * tensor.element_size()


def kind_of(tensor: torch.Tensor) -> Hashable:
    """Returns type and device, which the gradients of a pack have in common."""
    return tensor.dtype, tensor.device


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
    if fusion_bytes == _UNTUNED:
        return repr(AUTO)
    return "math.inf" if math.isinf(fusion_bytes) else f"{fusion_bytes:.15g}"
