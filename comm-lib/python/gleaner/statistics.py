"""The statistics of a rank: its counts and times, and what the program counts. Threads: as in gleaner.session."""

from __future__ import annotations

import ctypes
import operator
from dataclasses import dataclass, fields

from gleaner import _abi
from gleaner.connection import Connection


@dataclass(frozen=True)
class Stats:
    """Communication statistics of this rank since its session was opened. The values may be up to 250 ms old.

    Attributes:
        steps: Number of training steps: the calls of step(), or, if there are none, the requests of the tensor that had
            the most.
        bytes: Bytes of the tensors whose sums this rank has received.
        communication_seconds: Wall time with at least one request in flight, in seconds.
        bound_seconds: Best possible communication time of a step under the plan, in seconds; 0 if bandwidths are
            unknown, if schedules sum tensors (the coordinator's figures have their bound), or before the first step.
        epoch: Version of the plan in force.
        compressed_elements: Elements of compressed tensors (`sent_as` of declare()) that were rounded. This and the
            next two are counted on local rank 0 of each worker, whose contributions are the sums of its local ranks.
        clipped_elements: Compressed elements that were finite, and infinite after the rounding.
        flushed_elements: Compressed elements that were not zero, and zero after the rounding.
    """

    steps: int
    bytes: int
    communication_seconds: float
    bound_seconds: float
    epoch: int
    compressed_elements: int
    clipped_elements: int
    flushed_elements: int


class Statistics(Connection):
    """A connection with the statistics of its rank. The arguments are those of Connection."""

    def step(self) -> None:
        """Counts a step of training in the statistics. Optional.

        Raises:
            FailedPreconditionError: The session is closed or inherited.
        """
        self.call("gln_step")

    def count_saved(self, bytes: int) -> None:
        """Counts bytes of gradients that the program does not send in the current step, as in sparse communication.

        Args:
            bytes: Their number, at most 2**40. Negative: the step sends more than the gradients, as with padding.

        Raises:
            TypeError: `bytes` is no whole number.
            InvalidArgumentError: The magnitude of `bytes` is larger.
            FailedPreconditionError: The session is closed or inherited.
        """
        # ctypes would cut off the high bits.
        self.call("gln_count_saved", max(-(2**63), min(operator.index(bytes), 2**63 - 1)))

    def add_wait(self, seconds: float) -> None:
        """Counts time that the program has waited for requests other than in synchronize(), for the worker's metrics.

        Args:
            seconds: The time, 0 or more.

        Raises:
            InvalidArgumentError: `seconds` is negative or not finite.
            FailedPreconditionError: The session is closed or inherited.
        """
        self.call("gln_add_wait", seconds)

    def tell_packs(self, fusion_bytes: float, seconds: float, seconds_without_packs: float) -> None:
        """Tells the coordinator which packs of gradients this rank has chosen; those of rank 0 count.

        Args:
            fusion_bytes: Gradients of at most this many bytes are in packs; math.inf: all are; 0: none is.
            seconds: Predicted time from the first gradient of a step to the end of the exchange.
            seconds_without_packs: The same with each gradient on its own.

        Raises:
            InvalidArgumentError: A number is negative or NaN, or a time is infinite.
            FailedPreconditionError: The session is closed or inherited.
        """
        self.call("gln_tell_packs", fusion_bytes, seconds, seconds_without_packs)

    def stats(self) -> Stats:
        """Returns the communication statistics of this rank since its session was opened.

        Raises:
            FailedPreconditionError: The session is closed or inherited.
        """
        raw = _abi.Stats(ctypes.sizeof(_abi.Stats))
        self.call("gln_get_stats", ctypes.byref(raw))
        return Stats(*(getattr(raw, field.name) for field in fields(Stats)))
