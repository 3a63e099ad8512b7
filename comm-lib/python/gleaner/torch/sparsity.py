"""The settings of coarse-grained sparse communication (CSC). Source: GradientFlow §3.2."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Optional

from gleaner.errors import InvalidArgumentError
from gleaner.torch.compression import BlockCompressor


@dataclass(frozen=True)
class Sparsity:
    """Sends only the chunks of gradients that matter most. DistributedOptimizer, CrossBarrier and DDPState take it.

    All gradients lie one after another in chunks of `chunk_elements` elements. In each step, ranks send the chunks that
    had the largest L1 norms in the step before, and the optimizer updates only the parameters in these chunks. What a
    rank does not send it adds, times the momentum, to its next gradient. The first step sends all chunks.

    Attributes:
        share: Share of the chunks that a step does not send, from 0 to below 1. 0: every chunk is sent, as without
            sparsity. The paper trains with 0.85.
        warm_up_steps: Number of steps in which the share rises linearly from 0. The paper takes the first several
            percent of all steps: early gradients change fast, and training that leaves them out may end elsewhere.
        chunk_elements: Elements of a chunk. With more elements than the model has, its only chunk is always sent.
        momentum: Factor of what was not sent, from 0 to 1. None: "momentum" of each parameter's group; not with
            DDPState, which does not see the optimizer.
    """

    share: float
    warm_up_steps: int
    chunk_elements: int = 32_000
    momentum: Optional[float] = None

    def __post_init__(self) -> None:
        """Checks the attributes.

        Raises:
            TypeError: An attribute is no number.
            InvalidArgumentError: An attribute is out of range.
        """
        _check_number("share", self.share)
        if not 0 <= self.share < 1:
            raise InvalidArgumentError(
                f"share must be from 0 to below 1, not {self.share!r}: 0.85 leaves out 85 of 100 chunks, and with 1 "
                "ranks would send nothing and learn nothing from each other"
            )
        for name, least in (("warm_up_steps", 0), ("chunk_elements", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} must be a whole number, not {value!r}")
            if value < least:
                raise InvalidArgumentError(f"{name} must be at least {least}, not {value}")
        if self.momentum is not None:
            _check_number("momentum", self.momentum)
            if not 0 <= self.momentum <= 1:
                raise InvalidArgumentError(f"momentum must be from 0 to 1, or None, not {self.momentum!r}")


def share_in(sparsity: Sparsity, step: int) -> float:
    """Returns the share of chunks that step number `step`, from 0, does not send."""
    return 0.0 if step == 0 else sparsity.share * min(1.0, step / max(1, sparsity.warm_up_steps))


def sent_in(sparsity: Sparsity, step: int, chunks: int) -> int:
    """Returns how many of `chunks` chunks step number `step`, from 0, sends; at least one if there is one."""
    return chunks - min(math.floor(chunks * share_in(sparsity, step)), max(0, chunks - 1))


def _check_number(name: str, value: Any) -> None:
    if isinstance(value, (bool, str, bytes)) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} must be a number, not {value!r}")


def check_packets_compress(compression: Any) -> None:
    """Raises InvalidArgumentError if `compression` can't compress packets of important chunks."""
    if isinstance(compression, BlockCompressor):
        raise InvalidArgumentError(
            "sparsity works with Compression.none, fp16 and bf16: the residuals of other compressors belong to places "
            "of a tensor, and a packet has other chunks in each step"
        )


def check_sparsity(sparsity: Any) -> None:
    """Raises TypeError unless `sparsity` is None or a Sparsity."""
    if sparsity is not None and not isinstance(sparsity, Sparsity):
        raise TypeError(f"sparsity takes a gleaner.torch.Sparsity(share, warm_up_steps) or None, not {sparsity!r}")
