"""Finds reductions to start as one, as with Horovod's fusion buffer: small ones that a round has decided.

Pure. All ranks have the same decisions, and so fuse the same.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator
from typing import Optional

from gleaner.horovod.torch.negotiation import Decision, Description

# Tensors with at most this many elements are fused, up to so many in all: a copy of them costs less than a call.
MOST_ELEMENTS = 16 << 10
MOST_FUSED_ELEMENTS = 64 << 10


def fused(decisions: Iterable[Decision]) -> Iterator[list[Decision]]:
    """Yields the decisions in their order, in lists whose operations start as one."""
    batch: list[Decision] = []
    elements, key = 0, None
    for each in decisions:
        own = _key(each)
        more = _elements(each.example) if own is not None else 0
        if batch and (own is None or own != key or elements + more > MOST_FUSED_ELEMENTS):
            yield batch
            batch, elements = [], 0
        batch.append(each)
        elements, key = elements + more, own
    if batch:
        yield batch


def _key(decision: Decision) -> Optional[Hashable]:
    """Returns what operations that are fused have in common; None: the operation starts alone."""
    wanted = decision.example
    if wanted.kind != "allreduce" or decision.error or _elements(wanted) > MOST_ELEMENTS:
        return None
    if len(set(wanted.dtypes)) != 1 or set(wanted.devices) != {"cpu"}:
        return None
    return wanted.op, wanted.dtypes[0]


def _elements(wanted: Description) -> int:
    return sum(math.prod(shape) for shape in wanted.shapes)
