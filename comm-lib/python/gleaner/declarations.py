"""The tensors that a rank declares in its session, and how the job sums them. Threads: as in gleaner.session."""

from __future__ import annotations

import ctypes
import json
import numbers
from collections.abc import Sequence
from typing import Any, Optional

from gleaner import _abi
from gleaner._abi import DataType
from gleaner.codec import Codec, SentAs
from gleaner.connection import Connection
from gleaner.errors import InvalidArgumentError

# The largest buffer for the text of gln_get_tensor_plan(); a plan has at most some million partitions.
_MOST_PLAN_BYTES = 1 << 28


class Declarations(Connection):
    """A connection with the tensors that this rank has declared. The arguments are those of Connection."""

    def __init__(self, texts: Sequence[Optional[str]], open_timeout: float) -> None:
        self._tensors: dict[str, int] = {}  # ids of declared tensors, by name
        super().__init__(texts, open_timeout)

    def declare(
        self,
        name: str,
        elements: int,
        data_type: DataType,
        priority: int = 0,
        members: Optional[Sequence[int]] = None,
        sent_as: Optional[SentAs] = None,
    ) -> int:
        """Declares a tensor and returns its id on this rank. Does not block; may be called from several threads.

        Every rank must declare the tensor with the same number of elements and the same type, in any order. If ranks
        differ, the session ends with an InvalidArgumentError at the first request. A repeated call with the same
        arguments returns the same id.

        Args:
            name: 1 to 4096 bytes of UTF-8 without control characters.
            elements: Number of elements. All elements together have at most 1 TiB.
            data_type: Type of the elements.
            priority: Tensors with lower values are sent first; -2**31 to 2**31 - 1. All ranks use the value of rank 0.
            members: Ranks in ascending order, this rank among them, which sum the tensor; no other rank declares it.
                None: all ranks.
            sent_as: FLOAT16 or BFLOAT16: elements of FLOAT32 travel in this type, with half the bytes. Each worker's
                contribution is rounded once, and so is the result, whose sum is made in FLOAT32. A Codec: with fewer
                bytes. The same on all ranks. None: elements travel as they are.

        Raises:
            TypeError: `name` is not a str, or a number is not whole.
            InvalidArgumentError: An argument is out of range, `data_type` or `sent_as` is none, this rank has declared
                `name` differently, the type can't be sent as `sent_as`, or there are both `members` and `sent_as`.
            FailedPreconditionError: The session is closed or inherited, or there are `members` and workers have
                several local ranks.
        """
        tensor = ctypes.c_uint32()
        arguments = (_encoded(name), _whole("elements", elements), _type_number(data_type), _int32(priority))
        if sent_as is not None and members is not None:
            raise InvalidArgumentError(f"tensor '{name}' of members {list(members)} can't be compressed: omit sent_as")
        if sent_as is not None:
            self._declare_compressed(name, elements, data_type, priority, sent_as, tensor)
        elif members is None:
            self.call("gln_declare", *arguments, ctypes.byref(tensor))
        else:
            ranks = (ctypes.c_uint32 * len(members))(*members)
            self.call("gln_declare_for_members", *arguments, ranks, len(members), ctypes.byref(tensor))
        self._tensors[name] = tensor.value
        return tensor.value

    def _declare_compressed(
        self, name: str, elements: int, data_type: DataType, priority: int, sent_as: SentAs, tensor: ctypes.c_uint32
    ) -> None:
        if isinstance(sent_as, DataType):
            shape = (_encoded(name), elements, int(data_type), int(sent_as), _int32(priority))
            return self.call("gln_declare_compressed", *shape, ctypes.byref(tensor))
        if not isinstance(sent_as, Codec):
            raise InvalidArgumentError(
                f"sent_as takes DataType.FLOAT16, DataType.BFLOAT16 or a gleaner.Codec, such as "
                f"gleaner.Codec(gleaner.Method.INT8), not {sent_as!r}"
            )
        if data_type is not DataType.FLOAT32:
            raise InvalidArgumentError(f"tensor '{name}' of {data_type.name} can't be sent as {sent_as}: FLOAT32 can")
        size, feeds_back = ctypes.sizeof(_abi.Codec), int(sent_as.error_feedback)
        codec = _abi.Codec(size, sent_as.method, sent_as.kept, sent_as.seed, feeds_back, sent_as.momentum)
        shape = (_encoded(name), elements, ctypes.byref(codec), _int32(priority))
        self.call("gln_declare_encoded", *shape, ctypes.byref(tensor))

    def declare_accumulated(
        self, name: str, elements: int, data_type: DataType, priority: int = 0, staleness: Optional[int] = None
    ) -> int:
        """Declares a tensor whose requests, with Op.ACCUMULATE, add to a running sum that starts from zero.

        Returns its id on this rank. Local ranks of one worker wait for each other in each request.

        Args:
            name: As in declare().
            elements: As in declare().
            data_type: FLOAT32 or INT32.
            priority: As in declare().
            staleness: A request waits while another worker is more than this many requests of this tensor behind; the
                same on all ranks. None: a request waits for no other worker.

        Raises:
            TypeError: As in declare().
            InvalidArgumentError: As in declare(), or `staleness` is negative or not whole.
            FailedPreconditionError: The session is closed or inherited.
        """
        if staleness is not None and not (isinstance(staleness, numbers.Integral) and 0 <= staleness < _abi.UNBOUNDED):
            raise InvalidArgumentError(f"staleness must be None or a whole number from 0 on, not {staleness!r}")
        tensor = ctypes.c_uint32()
        behind = _abi.UNBOUNDED if staleness is None else staleness
        shape = (_encoded(name), _whole("elements", elements), _type_number(data_type), _int32(priority))
        self.call("gln_declare_accumulated", *shape, behind, ctypes.byref(tensor))
        self._tensors[name] = tensor.value
        return tensor.value

    def tensor_plan(self, name: str) -> dict[str, Any]:
        """Returns how the job sums a tensor: the JSON of gln_get_tensor_plan() as a dict.

        Args:
            name: Name that was passed to declare() or declare_accumulated().

        Raises:
            TypeError: The name is not a str.
            InvalidArgumentError: This rank has declared no tensor of this name.
            FailedPreconditionError: No plan has the tensor yet, or the session is closed or inherited.
        """
        _encoded(name)
        pointer = self._open()
        if name not in self._tensors:
            raise InvalidArgumentError(f"this rank has declared no tensor {name!r}; its first push_pull declares it")
        size = 1024
        while True:
            text = ctypes.create_string_buffer(size)
            status = self._library.gln_get_tensor_plan(pointer, self._tensors[name], text, size)
            # The tensor exists, so its text is too long for the buffer. A partition takes about 10 bytes of it.
            if status != _abi.INVALID_ARGUMENT or size >= _MOST_PLAN_BYTES:
                self._check(status, self._last_error(status))
                return json.loads(text.value)
            size *= 16


def _encoded(name: str) -> bytes:
    if not isinstance(name, str):
        raise TypeError(f"a tensor's name must be a str, not {name!r}")
    if "\0" in name:
        raise InvalidArgumentError(f"a tensor's name must not contain a NUL character, as {name!r} does")
    try:
        return name.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"a tensor's name must be UTF-8, which {name!r} is not: {error.reason}") from error


def _int32(priority: int) -> int:
    if not -(2**31) <= _whole("priority", priority) < 2**31:
        raise InvalidArgumentError(f"priority must be a number from -2**31 to 2**31 - 1, not {priority}")
    return int(priority)


def _whole(what: str, number: int) -> int:
    if not isinstance(number, numbers.Integral):
        raise TypeError(f"{what} must be a whole number, not {number!r}")
    return int(number)


def _type_number(data_type: DataType) -> int:
    if not isinstance(data_type, DataType):
        raise InvalidArgumentError(f"data_type takes a gleaner.DataType, such as DataType.FLOAT32, not {data_type!r}")
    return int(data_type)
