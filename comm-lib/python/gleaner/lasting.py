"""Registers inputs that stay at one address from step to step, so that RDMA sends them without a copy.

A lasting input is an input that stays at one address. DDP's buckets are lasting, and so are gradients that are zeroed
between steps (`zero_grad(set_to_none=False)`). Gradients that are freed and allocated again in each step are not.
"""

from __future__ import annotations

from typing import TypeVar

from gleaner import exchange
from gleaner.errors import InvalidArgumentError
from gleaner.exchange import Arrays
from gleaner.session import Session

T = TypeVar("T")

# Smaller inputs are not registered: their copy costs little, and each registration occupies an entry of the adapter.
_LEAST_BYTES = 64 << 10


class LastingInputs:
    """Registers the lasting inputs of one session. Several threads may make calls for different names at a time."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._addresses: dict[str, int] = {}  # last address, by name
        self._tried: set[str] = set()
        self._registered: set[str] = set()

    def register_if_unmoved(self, name: str, arrays: Arrays[T], array: T) -> None:
        """Registers the memory of `array` if it has the address of the last call for `name`.

        If a registered input has moved, this unregisters the old memory, and never registers this name again. Call it
        before each push_pull of `name`, with no request of that name in flight. Does nothing for the memory of a GPU.
        """
        if arrays.gpu(array, array) is not None:
            return
        address, before = arrays.address(array), self._addresses.get(name)
        if address == before:
            if name not in self._tried:
                self._tried.add(name)
                self._register(name, arrays, array)
            return
        self._addresses[name] = address
        if name in self._registered:
            self._registered.remove(name)
            self._session.unregister_memory(before)

    def forget(self, name: str) -> None:
        """Unregisters the input of `name`, which is not sent any more. No request of that name may be in flight."""
        address = self._addresses.pop(name, None)
        if name in self._registered:
            self._registered.remove(name)
            self._session.unregister_memory(address)

    def close(self) -> None:
        """Does nothing: the session unregisters all memory when it closes."""

    def _register(self, name: str, arrays: Arrays[T], array: T) -> None:
        if exchange.bytes_of(arrays, array) < _LEAST_BYTES:
            return
        try:
            exchange.register_memory(self._session, arrays, array)
        except InvalidArgumentError:
            return  # the array has gaps, so its copy is sent; or the program has registered a part of its memory
        self._registered.add(name)


__all__ = ["LastingInputs"]
