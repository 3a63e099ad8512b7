"""Compression of the sums of a process group that go through summers."""

from __future__ import annotations

from typing import Any, Optional, Union

import torch.distributed as dist

from gleaner.codec import Codec, Method, SentAs
from gleaner.errors import InvalidArgumentError
from gleaner.session import DataType
from gleaner.torch.compression import Compression

# By how it sends elements: the name of each compressor in Compression.
_NAMES: dict[Union[DataType, Method], str] = {
    DataType.FLOAT16: "fp16",
    DataType.BFLOAT16: "bf16",
    Method.INT8: "int8",
    Method.INT4: "dithering",
    Method.SIGN: "one_bit",
    Method.TOP_K: "top_k",
    Method.RANDOM_K: "random_k",
}


def sent_as_of_group(compression: Any) -> Optional[SentAs]:
    """Returns how sums of float32 travel; None: as they are.

    Raises:
        TypeError: `compression` is no compressor of Compression.
        InvalidArgumentError: The compressor has error feedback or momentum.
    """
    if compression is Compression.none:
        return None
    sent_as = getattr(compression, "sent_as", None)
    if sent_as is None:
        raise TypeError(
            "compression takes a compressor of gleaner.torch.Compression, such as Compression.fp16, not "
            f"{compression!r}"
        )
    if isinstance(sent_as, Codec) and (sent_as.error_feedback or sent_as.momentum > 0):
        raise InvalidArgumentError(
            "a process group does not know which sums follow each other, so its compression has no error feedback and "
            "no momentum: pass error_feedback=False, momentum=0, or use DDP with gleaner.torch.ddp_hook"
        )
    return sent_as


def label(sent_as: Optional[SentAs]) -> str:
    """Returns the end of the names of sums that travel like this. Names with different ends are different tensors."""
    if sent_as is None:
        return ""
    if isinstance(sent_as, Codec):
        return f".{sent_as.method.name}.{sent_as.kept}.{sent_as.seed}".lower()
    return f".as_{sent_as.name.lower()}"


def told(sent_as: Optional[SentAs]) -> str:
    """Returns the compressor by which sums travel like this, as a program passes it to set_compression()."""
    if sent_as is None:
        return "Compression.none"
    if not isinstance(sent_as, Codec):
        return f"Compression.{_NAMES[sent_as]}"
    kept = f"kept={sent_as.kept}, " if sent_as.kept else ""
    return f"Compression.{_NAMES[sent_as.method]}({kept}seed={sent_as.seed})"


def set_compression(compression: Any, group: Any = None) -> None:
    """Sends sums and averages of float32 that go through summers (from 1 MiB on) compressed from now on.

    Collective: all ranks of the group call this between the same collectives. The next sum of each size compares the
    compression of all ranks: if ranks differ, it fails on all of them with an InvalidArgumentError that names both. If
    only some ranks call this after earlier sums, the next sum waits for the group's timeout.

    Args:
        compression: Compression.none, or Compression.fp16 or another compressor of gleaner.torch.Compression without
            error feedback and momentum, since the sums of a process group are not those of one tensor from step to
            step.
        group: A group of backend gleaner with all ranks of the job; None: the default group.

    Raises:
        TypeError: `compression` is no compressor of Compression, or `group` is of another backend.
        InvalidArgumentError: The compressor has error feedback or momentum, or the group lacks ranks of the job.
    """
    target = dist.group.WORLD if group is None else group
    if not hasattr(target, "set_compression"):
        raise TypeError(f"set_compression takes a group of backend gleaner, not {target!r}")
    target.set_compression(compression)
