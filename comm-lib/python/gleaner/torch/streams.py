"""Orders the work of several CUDA streams on memory that they share."""

from __future__ import annotations

import torch


class StreamOrder:
    """Lets a stream follow others that have used the memory. Does nothing for the memory of the CPU. Not thread safe.

    Autograd may make gradients on several streams, but a request uses one.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device if device.type == "cuda" else None
        self._used: dict[torch.cuda.Stream, torch.cuda.Event] = {}

    def join(self) -> None:
        """Notes what the current stream has queued."""
        if self._device is not None:
            stream = torch.cuda.current_stream(self._device)
            self._used[stream] = stream.record_event(self._used.get(stream))

    def follow_all(self) -> None:
        """Has the current stream wait for all that join() has noted."""
        if self._device is None:
            return
        current = torch.cuda.current_stream(self._device)
        for stream, event in self._used.items():
            if stream != current:
                current.wait_event(event)
