"""Predicts when the exchange of a step's gradients ends, and chooses the threshold θ of packs with which it ends first.

Pure. Source: GradientFlow §3.1, which has θ chosen by hand ("a proper communication threshold"). The model: a pack is
sent when its last gradient is ready, messages go over the network one after the other in the order in which they are
ready, and each takes `message_seconds` and the time of its bytes. Example with messages of 10 ms besides their bytes,
and three gradients of 1 MB that take 1 ms each and are ready at 0, 4 and 8 ms:

    each alone    0 ─ 11    11 ─ 22    22 ─ 33
    in one pack             8 ─ 21
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Optional

from gleaner.torch.packs import packs_of

LEAST_THRESHOLD = 64 << 10  # bytes; candidates are its multiples by powers of two
# Packs need memory and copies, so they have to make the exchange end earlier by at least this share of its time.
LEAST_GAIN = 0.05


@dataclass(frozen=True)
class Gradient:
    """A gradient of a step.

    Attributes:
        bytes: Its size.
        ready: Seconds from the first gradient of the backward pass to this one, without the time to send others.
        kind: Its type and device.
    """

    bytes: int
    ready: float
    kind: Hashable


@dataclass(frozen=True)
class Costs:
    """The costs of messages in a job.

    Attributes:
        message_seconds: Time of a message besides the time of its bytes.
        bytes_per_second: Bytes of gradients that are averaged in a second.
        send_seconds: Time to begin a message, for which the next gradients wait.
        copied_per_second: Bytes that are copied into packs in a second. The next gradients wait for the copies.
    """

    message_seconds: float
    bytes_per_second: float
    send_seconds: float = 0.0
    copied_per_second: float = math.inf


@dataclass(frozen=True)
class Choice:
    """A threshold with its reasons.

    Attributes:
        fusion_bytes: Threshold θ in bytes; None: each gradient is a message of its own.
        seconds: Predicted time from the first gradient to the end of the exchange.
        seconds_without_packs: The same with each gradient as a message of its own.
    """

    fusion_bytes: Optional[float]
    seconds: float
    seconds_without_packs: float


def exchange_seconds(gradients: Sequence[Gradient], fusion_bytes: Optional[float], costs: Costs) -> float:
    """Returns the predicted time from the first gradient to the end of the exchange.

    Args:
        gradients: In the order in which backward() makes them.
        fusion_bytes: Threshold θ in bytes; None: no packs.
        costs: The costs of messages.
    """
    packs: tuple[tuple[int, ...], ...] = ()
    if fusion_bytes is not None:
        packs = packs_of([each.bytes for each in gradients], [each.kind for each in gradients], fusion_bytes)
    packed = {number for pack in packs for number in pack}
    messages = {pack[-1]: sum(gradients[number].bytes for number in pack) for pack in packs}  # by last gradient
    messages.update((number, each.bytes) for number, each in enumerate(gradients) if number not in packed)
    work = end = 0.0
    for number, each in enumerate(gradients):
        if number in packed:
            work += each.bytes / costs.copied_per_second
        if number in messages:
            work += costs.send_seconds
            end = max(end, each.ready + work) + costs.message_seconds + messages[number] / costs.bytes_per_second
    return end


def choose(gradients: Sequence[Gradient], costs: Costs) -> Choice:
    """Returns the threshold with which the exchange ends first, the least one of several.

    Candidates are the powers of two from 64 KiB to the bytes of the model, and infinity. Without packs the exchange has
    to end later by LEAST_GAIN, or there are none.

    Args:
        gradients: As in exchange_seconds().
        costs: The costs of messages.
    """
    candidates, threshold = [], LEAST_THRESHOLD
    while threshold < sum(each.bytes for each in gradients):
        candidates.append(float(threshold))
        threshold *= 2
    alone = exchange_seconds(gradients, None, costs)
    seconds, best = min((exchange_seconds(gradients, each, costs), each) for each in [*candidates, math.inf])
    if seconds >= (1 - LEAST_GAIN) * alone:
        return Choice(None, alone, alone)
    return Choice(best, seconds, alone)
