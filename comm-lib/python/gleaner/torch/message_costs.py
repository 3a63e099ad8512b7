"""Measures what messages cost in a job, for the choice of packs (fusion_model.py)."""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch

from gleaner import exchange
from gleaner.exchange import PushPullOptions
from gleaner.session import Session
from gleaner.torch.flights import Flights
from gleaner.torch.fusion_model import Costs
from gleaner.torch.packs import size_of
from gleaner.torch.slots import Slot
from gleaner.torch.tensors import TORCH

_ROUNDS = 5  # the least time of several counts: other work of a machine only adds to times
_SMALL_TENSORS = 16
_PROBE_BYTES = 32 << 20  # of gradients are exchanged to measure the bandwidth


def measured_costs(session: Session, name: str, flights: Flights, slots: Sequence[Slot], send_seconds: float) -> Costs:
    """Exchanges zeros to measure the costs of messages. Collective; blocks.

    The time of a message is the time that each further one of small tensors in flight takes, so it includes the work of
    this process, and no round trip. The bandwidth follows from an exchange of gradients.

    Args:
        session: The session of this rank.
        name: Prefix of the names of the small tensors.
        flights: Sends the gradients.
        slots: Slots whose gradients are exchanged, in the same order on all ranks, at least one.
        send_seconds: As in the result.
    """
    device = slots[0].parameter.device
    small = [torch.zeros(1, device=device) for _ in range(_SMALL_TENSORS)]
    _exchange_seconds(session, name, small)  # the first one waits for a plan with these tensors, and for late ranks
    several = min(_exchange_seconds(session, name, small) for _ in range(_ROUNDS))
    one = min(_exchange_seconds(session, name, small[:1]) for _ in range(_ROUNDS))
    message_seconds = max(0.0, several - one) / (_SMALL_TENSORS - 1)
    probe, probe_bytes = [], 0
    for slot in slots:
        if probe_bytes < _PROBE_BYTES:
            probe.append(slot)
            probe_bytes += size_of(slot.parameter)
    exchanged = min(flights.give_zeros(probe) for _ in range(3))
    # Where messages take all the time, the time of bytes is not known, and does not matter.
    of_bytes = max(exchanged - len(probe) * message_seconds, exchanged / 10)
    return Costs(message_seconds, probe_bytes / of_bytes, send_seconds, _copied_per_second(probe))


def _exchange_seconds(session: Session, name: str, small: Sequence[torch.Tensor]) -> float:
    begin = time.perf_counter()
    handles = [
        exchange.push_pull_async(
            session, TORCH, each, PushPullOptions(average=False, name=f"{name}.{number}", in_place=True)
        )
        for number, each in enumerate(small)
    ]
    for handle in handles:
        session.synchronize(handle)
    return time.perf_counter() - begin


def _copied_per_second(slots: Sequence[Slot]) -> float:
    """Returns how many bytes of these gradients are copied in a second; infinity for a GPU, which does not wait."""
    if slots[0].parameter.is_cuda:
        return float("inf")
    sources = [torch.zeros_like(each.parameter) for each in slots]
    targets = [torch.zeros_like(each) for each in sources]
    begin = time.perf_counter()
    for target, source in zip(targets, sources):
        target.copy_(source)
    return sum(map(size_of, sources)) / (time.perf_counter() - begin)
