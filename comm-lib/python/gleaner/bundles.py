"""Sums lists of named numpy arrays: the code behind gleaner.jax and gleaner.tensorflow.

A bundle is an operation (average, sum or broadcast) and the names, shapes and types of its arrays. All arrays of a
bundle are in flight at once. Every rank must call the functions of Bundles with the same bundles in the same order. A
small tensor with a digest of every rank's bundle travels with each bundle. If the bundles of ranks differ, all ranks
raise an error that tells the difference, instead of waiting for each other.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional

import numpy

from gleaner import arrays, exchange
from gleaner.errors import DeadlineExceededError, GleanerError, InvalidArgumentError
from gleaner.exchange import PushPullOptions
from gleaner.interruptible import SLICE_SECONDS
from gleaner.session import DataType, Session

# The digests are needed first, so they are sent before all arrays.
_DIGESTS = "bundle.digests"
_DIGESTS_PRIORITY = -1
_DIGEST_WORDS = 8  # int32 words of a SHA-256

NamedArrays = Sequence[tuple[str, numpy.ndarray]]


@dataclass(frozen=True)
class Bundle:
    """An operation and its arrays.

    Attributes:
        operation: "average", "sum" or "broadcast from rank N".
        name: The name that the program has given to the bundle; None: none.
        members: Name, shape and type of each array, in order.
    """

    operation: str
    name: Optional[str]
    members: tuple[tuple[str, tuple[int, ...], str], ...]

    @staticmethod
    def of(operation: str, name: Optional[str], named: NamedArrays) -> Bundle:
        """Raises InvalidArgumentError if two arrays have the same name."""
        members = tuple((each, array.shape, array.dtype.name) for each, array in named)
        names = [each for each, _ in named]
        if len(set(names)) < len(names):
            twice = next(each for each in names if names.count(each) > 1)
            raise InvalidArgumentError(f"two arrays have the name {twice!r}; each needs a name of its own")
        return Bundle(operation, name, members)

    def digest(self) -> bytes:
        return hashlib.sha256(repr((self.operation, self.name, self.members)).encode()).digest()

    def prefix(self) -> str:
        """Returns the beginning of the names of the bundle's tensors.

        It contains a digest if the program gave no name, so bundles with other arrays have tensors of their own.
        """
        return f"bundle.{self.digest().hex()[:12]}" if self.name is None else self.name

    def __str__(self) -> str:
        named = "" if self.name is None else f" named {self.name!r}"
        return f"{self.operation} of {len(self.members)} arrays{named}"


def difference(one: Bundle, other: Bundle) -> tuple[str, str]:
    """Returns a text about each of two bundles: the first thing in which they differ."""
    if (one.operation, one.name) != (other.operation, other.name):
        return str(one), str(other)
    for number, (a, b) in enumerate(zip(one.members, other.members)):
        if a != b:
            return f"{_text(a)} as array {number}", f"{_text(b)} as array {number}"
    return str(one), str(other)


def _text(member: tuple[str, tuple[int, ...], str]) -> str:
    name, shape, kind = member
    return f"{name!r}, {kind}{list(shape)},"


class Bundles:
    """Sums and broadcasts bundles in one session. Calls of several threads run one after the other."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._agreed: set[Bundle] = set()  # bundles that all ranks have declared
        self._by_name: dict[str, Bundle] = {}
        self._closing = False

    def close(self) -> None:
        """Ends the call of another thread, such as that of a callback, with a GleanerError, and waits for its end.

        No other call of the session may run while it is closed.
        """
        self._closing = True
        with self._lock:
            pass

    def push_pull(self, named: NamedArrays, average: bool = True, name: Optional[str] = None) -> list[numpy.ndarray]:
        """Returns the average or the sum of each array over all ranks, in new arrays. Collective; blocks.

        Arrays that come first have priority.

        Args:
            named: Pairs of a name and an array of a type that can be summed, the same on all ranks.
            average: True: averages; False: sums.
            name: Beginning of the names of the tensors. All bundles of one name must have the same arrays. None: the
                name follows from the arrays.

        Raises:
            TypeError: An array cannot be summed or averaged; the message names it.
            InvalidArgumentError: Two arrays have the same name, `name` was used for another bundle, or ranks differ in
                their bundles. All ranks raise the last of these.
            GleanerError: The session is closed or has failed; see gleaner.errors.
        """
        bundle = Bundle.of("average" if average else "sum", name, named)
        with self._lock:
            if bundle not in self._agreed:
                self._check(bundle, named)
                # Tensors that other ranks do not have would never be summed, so none is declared before ranks agree.
                self._compare(bundle, self._send_digest(bundle))
                self._declare(bundle, named)
                handles = self._start(bundle, named)
            else:
                digests = self._send_digest(bundle)
                handles = self._start(bundle, named)
                self._compare(bundle, digests)
            return [array.copy() if handle is None else self._wait(handle) for array, handle in handles]

    def broadcast(self, named: NamedArrays, root: int) -> list[numpy.ndarray]:
        """Returns copies of the arrays of rank `root`, bit for bit. Collective; blocks.

        Args:
            named: Pairs of a name and an array of any type without Python objects, the same on all ranks.
            root: Rank whose arrays are copied; the same on all ranks.

        Raises:
            TypeError: An array holds Python objects.
            InvalidArgumentError: `root` is not a rank, or ranks differ in arrays or root. All ranks raise the latter.
            GleanerError: The session is closed or has failed; see gleaner.errors.
        """
        for name, array in named:
            if array.dtype.hasobject:
                raise TypeError(f"{name!r} holds Python objects, which have no bytes to send; use broadcast_object")
        if not 0 <= root < self._session.rank_info.size:
            raise InvalidArgumentError(f"root {root} is not a rank; there are {self._session.rank_info.size}")
        bundle = Bundle.of(f"broadcast from rank {root}", None, named)
        copies = [numpy.array(array, order="C") for _, array in named]
        parts = [each.reshape(-1).view(numpy.uint8) for each in copies]
        packed = numpy.concatenate([*parts, numpy.empty(0, numpy.uint8)])
        with self._lock:
            self._compare(bundle, self._send_digest(bundle))
            exchange.broadcast_bytes(self._session, packed, root)
        start = 0
        for part in parts:
            part[:] = packed[start : start + part.size]
            start += part.size
        return copies

    def _check(self, bundle: Bundle, named: NamedArrays) -> None:
        """Raises TypeError if an array cannot be summed, and InvalidArgumentError if another bundle has this name."""
        for name, array in named:
            check_summable(name, array.dtype, average=bundle.operation == "average")
        earlier = self._by_name.get(bundle.prefix(), bundle)
        if earlier != bundle:
            ours, before = difference(bundle, earlier)
            raise InvalidArgumentError(
                f"name {bundle.name!r} was used before with {before}, and now with {ours}; pass another name"
            )

    def _declare(self, bundle: Bundle, named: NamedArrays) -> None:
        """Declares all tensors of a bundle that all ranks have, so that the job needs only one plan for them."""
        prefix = bundle.prefix()
        self._agreed.add(bundle)
        self._by_name[prefix] = bundle
        for priority, (name, array) in enumerate(named):
            if array.size:
                exchange.declare(self._session, arrays.NUMPY, array, prefix + name, priority)

    def _start(self, bundle: Bundle, named: NamedArrays) -> list[tuple[numpy.ndarray, Optional[int]]]:
        """Starts a request for each array. Returns each array with its handle, or with None if it is empty."""
        prefix, average = bundle.prefix(), bundle.operation == "average"

        def start(priority: int, name: str, array: numpy.ndarray) -> int:
            options = PushPullOptions(average, prefix + name, priority)
            return exchange.push_pull_async(self._session, arrays.NUMPY, array, options)

        numbered = enumerate(named)
        return [(array, start(number, name, array) if array.size else None) for number, (name, array) in numbered]

    def _wait(self, handle: int) -> numpy.ndarray:
        """Waits for a request until close(). Returns its result."""
        while not self._closing:
            try:
                return self._session.synchronize(handle, SLICE_SECONDS)
            except DeadlineExceededError:
                pass
        raise GleanerError("this rank left the job before other ranks have sent their arrays")

    def _send_digest(self, bundle: Bundle) -> int:
        info = self._session.rank_info
        digests = numpy.zeros((info.size, _DIGEST_WORDS), numpy.int32)
        digests[info.rank] = numpy.frombuffer(bundle.digest(), numpy.int32)
        options = PushPullOptions(average=False, name=_DIGESTS, priority=_DIGESTS_PRIORITY)
        return exchange.push_pull_async(self._session, arrays.NUMPY, digests, options)

    def _compare(self, bundle: Bundle, handle: int) -> None:
        """Waits for the digests. Raises the same InvalidArgumentError on every rank if ranks differ."""
        digests = self._wait(handle)
        others = numpy.flatnonzero((digests != digests[0]).any(axis=1))
        if not others.size:
            return
        other = int(others[0])
        first_bundle = exchange.broadcast_object(self._session, bundle, 0)
        other_bundle = exchange.broadcast_object(self._session, bundle, other)
        first, second = difference(first_bundle, other_bundle)
        raise InvalidArgumentError(
            f"ranks differ: rank 0 has {first} and rank {other} has {second}; every rank must make the same calls, in "
            "the same order, with arrays of the same names, shapes and types"
        )


def check_summable(name: str, kind: numpy.dtype, average: bool) -> None:
    """Raises TypeError, with the name of the array, if arrays of this type cannot be summed or averaged."""
    try:
        data_type = arrays.NUMPY.data_type(numpy.empty(0, kind))
    except TypeError as error:
        raise TypeError(f"{name!r}: {error}") from None
    if average and data_type is DataType.INT32:
        raise TypeError(
            f"{name!r}: an average of int32 is not an integer; ask for the sum, or convert to a floating type"
        )
