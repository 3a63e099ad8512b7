"""Codecs: how compressed tensors travel, with fewer bytes than 16 bits an element (docs/compression.md)."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Union

from gleaner._abi import DataType
from gleaner.errors import InvalidArgumentError

BLOCK_ELEMENTS = 1024
MOST_KEPT = 128


class Method(enum.IntEnum):
    """How elements travel, in blocks of 1,024 elements: gln_method of the C ABI."""

    INT8 = 7
    """A byte each, and a scale for each block."""
    INT4 = 8
    """4 bits each, rounded at random (dithering), and a scale for each block."""
    SIGN = 9
    """The sign each, and the mean magnitude of each block. The sum travels as INT8."""
    TOP_K = 16
    """The `kept` elements of each block that have the largest magnitude."""
    RANDOM_K = 24
    """`kept` elements at random places of each block, which are the same on all ranks."""


@dataclass(frozen=True)
class Codec:
    """How a tensor of FLOAT32 is compressed. The same on all ranks.

    Attributes:
        method: How elements travel.
        kept: For TOP_K and RANDOM_K: a power of two from 1 to 128. For other methods: 0.
        seed: Seed of random numbers, 0 to 2**64 - 1.
        error_feedback: True: what a contribution lacks is added to the next contribution of this worker. The residuals
            are kept in memory of the worker, 4 bytes an element, as long as the session is open.
        momentum: 0 to below 1: contributions have Nesterov momentum with this factor, before they are compressed. It
            takes another 4 bytes an element. Train then without momentum in the optimizer.

    Raises:
        TypeError: A value has another type.
        InvalidArgumentError: A value is out of range.
    """

    method: Method
    kept: int = 0
    seed: int = 0
    error_feedback: bool = True
    momentum: float = 0.0

    def __post_init__(self) -> None:
        for name in ("kept", "seed"):
            if type(getattr(self, name)) is not int:
                raise TypeError(f"{name} must be a whole number, not {getattr(self, name)!r}")
        if not isinstance(self.error_feedback, bool):
            raise TypeError(f"error_feedback must be True or False, not {self.error_feedback!r}")
        if not isinstance(self.method, Method):
            raise TypeError(f"method must be a gleaner.Method, not {self.method!r}")
        if isinstance(self.momentum, bool) or not isinstance(self.momentum, (int, float)):
            raise TypeError(f"momentum must be a number, not {self.momentum!r}")
        keeps = self.method in (Method.TOP_K, Method.RANDOM_K)
        if keeps and not (1 <= self.kept <= MOST_KEPT and self.kept & (self.kept - 1) == 0):
            raise InvalidArgumentError(
                f"{self.method.name} keeps a power of two up to {MOST_KEPT} elements, not {self.kept}"
            )
        if not keeps and self.kept != 0:
            raise InvalidArgumentError(f"{self.method.name} keeps all elements: omit kept={self.kept}")
        if not 0 <= self.seed < 2**64:
            raise InvalidArgumentError(f"a seed is a number from 0 to 2**64 - 1, not {self.seed}")
        if not 0 <= self.momentum < 1:
            raise InvalidArgumentError(f"a momentum is a number from 0 to below 1, not {self.momentum}")


SentAs = Union[DataType, Codec]
