"""Records in which order and when backward() makes the gradients of a step."""

from __future__ import annotations

import time
from typing import Callable, Optional

import torch

from gleaner.torch.slots import Slot


class Readiness:
    """Records the gradients of the last averaging round. Not thread safe.

    The times are those of a backward pass that sends nothing. On a GPU the host is ahead of the kernels that make
    gradients, so the times are those of events on their streams, and sending delays no gradient.
    """

    send_seconds: float = 0.0  # mean time to begin a message in the last round, for which later gradients have waited

    def __init__(self) -> None:
        self._running: dict[Slot, _Moment] = {}  # of the round that has begun
        self._sending = 0.0  # seconds in which this round has sent gradients
        self._last: dict[Slot, _Moment] = {}

    def record(self, slot: Slot, send: Callable[[Slot], None]) -> None:
        """Sends the gradient of a slot by `send`, and notes that backward() has made it in the last pass of a step."""
        device = slot.parameter.device
        begin = time.perf_counter()
        self._running[slot] = _Moment(device, begin - self._sending)
        send(slot)
        if device.type != "cuda":
            self._sending += time.perf_counter() - begin

    def end_round(self) -> None:
        """Ends an averaging round, which is then the last one."""
        self.send_seconds = self._sending / max(1, len(self._running))
        self._last, self._running, self._sending = self._running, {}, 0.0

    def seconds(self) -> dict[Slot, float]:
        """Returns the seconds from the first gradient of the last round to each one, in the order of gradients."""
        moments = list(self._last.values())
        seconds, latest = {}, 0.0
        for slot, moment in self._last.items():
            latest = max(latest, moment.seconds_after(moments[0]))  # streams may end in another order
            seconds[slot] = latest
        return seconds


class _Moment:
    """A moment on the host and, for a gradient on a GPU, on the current stream."""

    def __init__(self, device: torch.device, on_host: float) -> None:
        self._device, self._on_host = device, on_host
        self._event: Optional[torch.cuda.Event] = None
        if device.type == "cuda":
            self._event = torch.cuda.Event(enable_timing=True)
            self._event.record(torch.cuda.current_stream(device))

    def seconds_after(self, first: _Moment) -> float:
        """Returns the seconds since `first`, by the host's clock unless both are on one GPU."""
        if self._event is None or first._device != self._device:
            return self._on_host - first._on_host
        self._event.synchronize()
        return first._event.elapsed_time(self._event) / 1000
