"""Horovod's layer over the session of this process, between init() and shutdown()."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Iterable, Sequence
from typing import Any, Optional, Union

from gleaner import process
from gleaner.errors import FailedPreconditionError, InvalidArgumentError
from gleaner.horovod.torch.controller import NUMBERS, Controller
from gleaner.horovod.torch.negotiation import JOIN, Description
from gleaner.horovod.torch.process_sets import ProcessSet, global_process_set
from gleaner.horovod.torch.requests import Request
from gleaner.session import Session

# Numbers of groups of process sets begin here; those of torch.distributed's groups (distributed/job.py) begin at 0.
_FIRST_NUMBER = 1 << 30


class Layer:
    """The process sets of this rank, and its operations in flight.

    Attributes:
        hosts: The host of each rank.
    """

    def __init__(self, session: Session) -> None:
        """Collective."""
        self.rank, self.size = session.rank_info.rank, session.rank_info.size
        self._session = session
        self._numbers = session.attached(_Numbers)
        self._controllers: dict[int, Controller] = {}
        self._sets: dict[int, ProcessSet] = {}
        self._ids = itertools.count()  # of process sets
        self._handles = itertools.count(1)
        self._requests: dict[int, Request] = {}
        self._unnamed: dict[tuple[int, str], int] = {}  # number of operations without a name, by process set and kind
        self._joins = 0  # number of joins so far
        self._names: dict[tuple[Optional[int], str], Request] = {}  # operations in flight, until they are synchronized
        self._lock = threading.Lock()
        global_process_set.ranks = list(range(self.size))
        self._enter(global_process_set)
        told = self._controllers[0].rounds.exchange(socket.gethostname().encode())
        self.hosts = [each.decode() for each in told]

    def close(self) -> None:
        for each in self._controllers.values():
            each.close()
        for process_set in self._sets.values():
            process_set.leave()

    # Operations

    def submit(self, process_set: ProcessSet, request: Request) -> int:
        """Starts an operation that name() has named, and returns its handle.

        Raises:
            InvalidArgumentError: An operation of this name is in flight.
            GleanerError: The session has failed.
        """
        key = request.key = process_set.process_set_id, request.description.name
        with self._lock:
            if key in self._names:
                raise InvalidArgumentError(
                    f"{key[1]} is in flight: give each operation a name of its own, until synchronize() has returned "
                    "its result or poll() has returned True"
                )
            self._names[key] = request
            handle = next(self._handles)
            self._requests[handle] = request
        try:
            self.controller(process_set).submit(request)
        except BaseException:
            self.forget(handle)
            raise
        return handle

    def name(self, process_set: ProcessSet, kind: str, name: Optional[str]) -> str:
        """Returns the name of an operation. Without a name, it is the next of this kind on all ranks."""
        if name is not None:
            return f"{kind}.{name}"
        key = process_set.process_set_id, kind
        with self._lock:
            self._unnamed[key] = self._unnamed.get(key, 0) + 1
            return f"{kind}.noname.{self._joins}.{self._unnamed[key]}"

    def join(self) -> int:
        """Contributes zeros to allreduces until all ranks have called this. Returns the rank that was the last."""
        last = self.synchronize(self.submit(global_process_set, Request(Description(JOIN, JOIN))))
        with self._lock:  # ranks have submitted different numbers of operations without a name
            self._joins += 1
            self._unnamed = {key: count for key, count in self._unnamed.items() if key[0]}
        return last

    def controller(self, process_set: ProcessSet) -> Controller:
        """Returns the controller of a process set. Raises InvalidArgumentError if this rank cannot use the set."""
        found = self._controllers.get(process_set.process_set_id)
        if found is None:
            reason = "add_process_set() has not made it" if process_set.process_set_id is None else "it is no member"
            raise InvalidArgumentError(f"rank {self.rank} cannot use {process_set}: {reason}")
        return found

    def poll(self, handle: int) -> bool:
        request = self._requests.get(handle)
        if request is None:
            raise InvalidArgumentError(f"handle {handle} is unknown, or was synchronized before")
        is_done = request.is_done()
        if is_done:
            self._free_name(request)
        return is_done

    def synchronize(self, handle: int) -> Any:
        """Waits for an operation and returns its result; None: the handle is unknown, or was synchronized before."""
        request = self._requests.get(handle)
        if request is None:
            return None
        try:
            return request.wait()
        finally:
            if request.is_done():
                self.forget(handle)

    def forget(self, handle: int) -> None:
        """Drops an operation, of which nobody needs the result; does nothing if the handle is unknown."""
        with self._lock:
            request = self._requests.pop(handle, None)
        if request is not None:
            self._free_name(request)

    def _free_name(self, request: Request) -> None:
        with self._lock:
            if self._names.get(request.key) is request:
                del self._names[request.key]

    # Process sets

    def add(self, process_set: Union[ProcessSet, Sequence[int]]) -> ProcessSet:
        """Makes a process set usable, and returns it. All ranks must call this. Collective; blocks.

        Raises:
            InvalidArgumentError: The set has no ranks, unknown ranks, or those of another set; or ranks differ in it.
            GleanerError: The session has failed.
        """
        if not isinstance(process_set, ProcessSet):
            process_set = ProcessSet(process_set)
        ranks = process_set.ranks
        if not ranks or not 0 <= ranks[0] <= ranks[-1] < self.size:
            raise InvalidArgumentError(f"process set {ranks} must have some of the ranks 0 to {self.size - 1}")
        same = self._same(ranks)
        if same is not None:
            raise InvalidArgumentError(f"{same} has these ranks: use it, or remove it first")
        self._agree("add_process_set", tuple(ranks))
        self._enter(process_set)
        return process_set

    def remove(self, process_set: ProcessSet) -> bool:
        """Removes a process set. All ranks must call this. Collective; blocks. Returns whether there was such a set."""
        number = process_set.process_set_id
        if not number or self._sets.get(number) is not process_set:
            return False
        self._agree("add_process_set", (-number,))
        controller = self._controllers.pop(number, None)
        if controller is not None:
            controller.close()
        del self._sets[number]
        process_set.leave()
        return True

    def add_all(self, process_sets: Iterable[Union[ProcessSet, Sequence[int]]]) -> None:
        """Adds process sets, and leaves those unusable whose ranks another set has, as Horovod does."""
        for each in process_sets:
            process_set = each if isinstance(each, ProcessSet) else ProcessSet(each)
            if self._same(process_set.ranks) is None:
                self.add(process_set)

    def _same(self, ranks: Sequence[int]) -> Optional[ProcessSet]:
        """Returns the usable process set of these ranks, if there is one."""
        return next((each for each in self._sets.values() if each.ranks == ranks), None)

    def _agree(self, kind: str, numbers: tuple[int, ...]) -> None:
        name = self.name(global_process_set, kind, None)
        self.synchronize(self.submit(global_process_set, Request(Description(kind, name, numbers=numbers))))

    def _enter(self, process_set: ProcessSet) -> None:
        number = next(self._ids)
        first = self._numbers.take(NUMBERS)
        process_set.enter(self, number)
        self._sets[number] = process_set
        if process_set.included():
            self._controllers[number] = Controller(self._session, first, process_set.ranks)


class _Numbers:
    """The numbers of groups that process sets of a session have used."""

    def __init__(self, _: Session) -> None:
        self._next = _FIRST_NUMBER

    def take(self, count: int) -> int:
        self._next += count
        return self._next - count

    def close(self) -> None:
        pass


class Present:
    """The layer of a session, if init() was called and shutdown() was not."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._layer: Optional[Layer] = None

    def open(self, process_sets: Iterable[Union[ProcessSet, Sequence[int]]]) -> None:
        """Collective. Does nothing if the layer is open."""
        if self._layer is None:
            self._layer = Layer(self._session)
            self._layer.add_all(process_sets)

    @property
    def layer(self) -> Layer:
        if self._layer is None:
            raise FailedPreconditionError("call gleaner.horovod.torch.init() first, and not after shutdown()")
        return self._layer

    @property
    def is_open(self) -> bool:
        return self._layer is not None

    def close(self) -> None:
        layer, self._layer = self._layer, None
        if layer is not None:
            layer.close()


def present() -> Layer:
    """Returns the layer of this process.

    Raises:
        FailedPreconditionError: There is none: before init() or after shutdown().
    """
    return process.current().attached(Present).layer
