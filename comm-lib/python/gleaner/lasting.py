"""Which inputs stay where they are from step to step: their memory is registered, so that RDMA sends it without a copy.

DDP's buckets do, and gradients that are zeroed between steps (`zero_grad(set_to_none=False)`); those that are dropped
and made anew come to lie elsewhere.
"""

from __future__ import annotations

from typing import TypeVar

from gleaner import exchange
from gleaner.errors import InvalidArgumentError
from gleaner.exchange import Arrays
from gleaner.session import Session

T = TypeVar("T")

_LEAST_BYTES = 64 << 10  # an adapter keeps an entry, and whole pages, for each; less is copied as quickly


class LastingInputs:
    """Of one session. Calls for one name come one after the other, for others from any thread."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._places: dict[str, int] = {}  # where each was last
        self._tried: set[str] = set()
        self._registered: set[str] = set()

    def look(self, name: str, arrays: Arrays[T], array: T) -> None:
        """Before each push_pull of `array`, with none of that name in flight.

        Registers it when it lies where it lay the last time, and undoes that, for good, when it has moved.
        """
        address, before = arrays.address(array), self._places.get(name)
        if address == before:
            if name not in self._tried:
                self._tried.add(name)
                self._register(name, arrays, array)
            return
        self._places[name] = address
        if name in self._registered:
            self._registered.remove(name)
            self._session.unregister_memory(before)

    def close(self) -> None:
        """The session forgets what was registered when it closes."""

    def _register(self, name: str, arrays: Arrays[T], array: T) -> None:
        if exchange.bytes_of(arrays, array) < _LEAST_BYTES:
            return
        try:
            exchange.register_memory(self._session, arrays, array)
        except InvalidArgumentError:
            return  # it has gaps, so that what is sent is a copy; or its user has registered it, or a part of it
        self._registered.add(name)


__all__ = ["LastingInputs"]
