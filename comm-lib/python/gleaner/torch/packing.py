"""Which flights send the gradients of one optimizer: those of chunks with sparsity, else those of packs.

Packs are made by a guess at first, then by what the first steps show (pack_tuning.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable, Optional, Union

from gleaner.session import Session
from gleaner.torch.compression import Compressor
from gleaner.torch.flights import Flights
from gleaner.torch.pack_tuning import PackTuning
from gleaner.torch.packs import AUTO, Fusion
from gleaner.torch.roll_call import Roll
from gleaner.torch.sent_tensors import sent_tensors
from gleaner.torch.slots import Slot
from gleaner.torch.sparse_flights import SparseFlights
from gleaner.torch.sparsity import Sparsity


class Packing:
    """Makes the flights of one optimizer, and makes others when its packs are tuned. Not thread safe.

    The first steps send the packs of a fixed threshold as if backward() made gradients in the reversed order of
    parameters, and with "auto" no packs.

    Args:
        slots: All slots of the optimizer.
        fusion_bytes: As in DistributedOptimizer().
        compression: The compressor of gradients.
    """

    flights: Flights
    fusion: Fusion
    sparse = None
    tuning: Optional[PackTuning]  # until its decision; None: there is nothing to decide

    def __init__(self, slots: Sequence[Slot], fusion_bytes: Union[float, str, None], compression: Compressor) -> None:
        self._slots, self._fusion_bytes, self._compression = slots, fusion_bytes, compression
        self.restart()

    def restart(self) -> None:
        """Makes flights as for the first step of a session."""
        self._order = tuple(reversed(range(len(self._slots))))
        self._make(self._fusion_bytes)
        self.tuning = PackTuning(self._fusion_bytes) if self.fusion.fingerprint else None

    def tune(self, session: Session, name: str, step: int, roll: Roll) -> bool:
        """Tunes the packs if it is time to. Returns whether there are other flights. Collective; blocks.

        Args:
            session: The session of this rank.
            name: Prefix of the names of tensors.
            step: Number of the step that ends, from 1. None of its gradients is in flight.
            roll: The last roll of the step.

        Raises:
            GleanerError: The session has failed.
        """
        if self.tuning is None or not self.tuning.is_due(step, roll):
            return False
        tuned = self.tuning.decide(session, name, self.flights, self._slots, roll)
        self.tuning = None
        if self._fusion_bytes != AUTO and tuple(tuned.order) == self._order:
            return False
        self._order = tuple(tuned.order)
        self.flights.leave()
        self._make(tuned.fusion_bytes, len(self.fusion.packs))
        self.flights.enter(session, name)
        self.flights.declare(each for each in self._ordered() if each.parameter.requires_grad)
        return True

    def _ordered(self) -> list[Slot]:
        return [self._slots[number] for number in self._order]

    def _make(self, fusion_bytes: Union[float, str, None], first_number: int = 0) -> None:
        ordered = self._ordered()
        for slot in ordered:
            slot.place = slot.of_place = None
        self.fusion = Fusion.of([each.parameter for each in ordered], fusion_bytes)
        sent = sent_tensors(ordered, self.fusion, first_number)
        self.flights = Flights(sent, self.fusion.fingerprint, self._compression)


class ChunkPacking:
    """Has the functions of Packing for the flights of important chunks, which are never tuned.

    Args:
        slots: All slots of the optimizer.
        sparsity: The settings.
        fusion_bytes: As in DistributedOptimizer().
        compression: As in SparseFlights.
        prioritize: As in SparseFlights.
        groups: As in SparseFlights.

    Raises:
        InvalidArgumentError: As in SparseFlights.
    """

    tuning = None

    def __init__(
        self,
        slots: Sequence[Slot],
        sparsity: Sparsity,
        fusion_bytes: Union[float, str, None],
        compression: Compressor,
        prioritize: bool,
        groups: Callable[[], Sequence[Mapping[str, Any]]],
    ) -> None:
        packet_bytes = None if fusion_bytes == AUTO else fusion_bytes
        self.fusion = Fusion(packet_bytes or 0, (), 0, sparsity.share)
        self.flights = self.sparse = SparseFlights(slots[::-1], sparsity, packet_bytes, compression, prioritize, groups)

    def restart(self) -> None:
        """Does nothing: chunks are the same in each session."""


def packing_of(
    slots: Sequence[Slot],
    sparsity: Optional[Sparsity],
    fusion_bytes: Union[float, str, None],
    compression: Compressor,
    prioritize: bool,
    groups: Callable[[], Sequence[Mapping[str, Any]]],
) -> Union[Packing, ChunkPacking]:
    """Returns the packing of an optimizer. The arguments are those of ChunkPacking; `sparsity` None: of packs."""
    if sparsity is None:
        return Packing(slots, fusion_bytes, compression)
    return ChunkPacking(slots, sparsity, fusion_bytes, compression, prioritize, groups)
