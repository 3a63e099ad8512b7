"""Declares the C ABI of libgleaner (include/gleaner/gleaner.h) for ctypes, and finds and loads the library.

GLEANER_LIBRARY names the library. Without it, the library is the first of these files that exists: libgleaner.so in
this package (wheel); libgleaner.so three directories above this package (CMake install);
build/release/lib/libgleaner.so of the source tree; libgleaner.so in the system's loader path. Calls release the GIL
while they run.
"""

from __future__ import annotations

import ctypes
import enum
import os
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from gleaner._loading import open_library
from gleaner.errors import GleanerError

OK = 0
INVALID_ARGUMENT = 1
FAILED_PRECONDITION = 2
DEADLINE_EXCEEDED = 3

LIBRARY_NAME = "libgleaner.so"


class DataType(enum.IntEnum):
    """gln_data_type: the element types that can be summed."""

    FLOAT32 = 1
    FLOAT64 = 2
    FLOAT16 = 3
    BFLOAT16 = 4
    INT32 = 5

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return {"FLOAT64": 8, "FLOAT16": 2, "BFLOAT16": 2}.get(self.name, 4)


class Op(enum.IntEnum):
    """gln_op: the operation of a request.

    AVERAGE divides the sum by the number of ranks and then rounds once; INT32 has no AVERAGE. ACCUMULATE adds to a
    running sum, and is the only operation of tensors from Session.declare_accumulated().
    """

    SUM = 1
    AVERAGE = 2
    ACCUMULATE = 3


class Collective(enum.IntEnum):
    """gln_collective: collectives that move bytes, and do not add."""

    BROADCAST = 1
    ALL_GATHER = 2
    GATHER = 3
    SCATTER = 4
    ALL_TO_ALL = 5


UNBOUNDED = 2**32 - 1  # GLN_UNBOUNDED


class Options(ctypes.Structure):
    """gln_options."""

    _fields_: ClassVar = [
        ("size", ctypes.c_size_t),
        ("coordinator", ctypes.c_char_p),
        ("job", ctypes.c_char_p),
        ("worker", ctypes.c_char_p),
        ("local_rank", ctypes.c_char_p),
        ("local_size", ctypes.c_char_p),
        ("address", ctypes.c_char_p),
        ("token_file", ctypes.c_char_p),
        ("open_timeout_seconds", ctypes.c_double),
    ]


class Codec(ctypes.Structure):
    """gln_codec."""

    _fields_: ClassVar = [
        ("size", ctypes.c_size_t),
        ("method", ctypes.c_int),
        ("kept", ctypes.c_uint32),
        ("seed", ctypes.c_uint64),
        ("error_feedback", ctypes.c_int),
        ("momentum", ctypes.c_float),
    ]


class RankInfo(ctypes.Structure):
    """gln_rank_info."""

    _fields_: ClassVar = [
        ("size", ctypes.c_size_t),
        ("rank", ctypes.c_uint32),
        ("ranks", ctypes.c_uint32),
        ("worker", ctypes.c_uint32),
        ("workers", ctypes.c_uint32),
        ("local_rank", ctypes.c_uint32),
        ("local_ranks", ctypes.c_uint32),
        ("summers", ctypes.c_uint32),
    ]


class Stats(ctypes.Structure):
    """gln_stats."""

    _fields_: ClassVar = [
        ("size", ctypes.c_size_t),
        ("steps", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("communication_seconds", ctypes.c_double),
        ("bound_seconds", ctypes.c_double),
        ("epoch", ctypes.c_uint32),
        ("compressed_elements", ctypes.c_uint64),
        ("clipped_elements", ctypes.c_uint64),
        ("flushed_elements", ctypes.c_uint64),
    ]


class Call(ctypes.Structure):
    """gln_call."""

    _fields_: ClassVar = [
        ("size", ctypes.c_size_t),
        ("group", ctypes.c_uint32),
        ("collective", ctypes.c_int),
        ("root", ctypes.c_uint32),
        ("input", ctypes.c_void_p),
        ("input_bytes", ctypes.c_uint64),
        ("output", ctypes.c_void_p),
        ("output_bytes", ctypes.c_uint64),
        ("sent", ctypes.POINTER(ctypes.c_uint64)),
        ("received", ctypes.POINTER(ctypes.c_uint64)),
        ("ranks", ctypes.c_uint32),
        ("kind", ctypes.c_uint32),
    ]


_SESSION = ctypes.c_void_p
_U64 = ctypes.c_uint64
_SIGNATURES = {
    "gln_version": (ctypes.c_char_p, []),
    "gln_last_error": (ctypes.c_char_p, []),
    "gln_open": (ctypes.c_int, [ctypes.POINTER(Options), ctypes.POINTER(_SESSION)]),
    "gln_close": (ctypes.c_int, [_SESSION, ctypes.c_int]),
    "gln_close_to_return": (ctypes.c_int, [_SESSION]),
    "gln_get_newcomers": (ctypes.c_int, [_SESSION, ctypes.POINTER(ctypes.c_uint32)]),
    "gln_get_rank_info": (ctypes.c_int, [_SESSION, ctypes.POINTER(RankInfo)]),
    "gln_get_stats": (ctypes.c_int, [_SESSION, ctypes.POINTER(Stats)]),
    "gln_get_transports": (ctypes.c_int, [_SESSION, ctypes.c_char_p, ctypes.c_size_t]),
    "gln_get_tensor_plan": (ctypes.c_int, [_SESSION, ctypes.c_uint32, ctypes.c_char_p, ctypes.c_size_t]),
    "gln_declare": (
        ctypes.c_int,
        [_SESSION, ctypes.c_char_p, _U64, ctypes.c_int, ctypes.c_int32, ctypes.POINTER(ctypes.c_uint32)],
    ),
    "gln_declare_for_members": (
        ctypes.c_int,
        [
            _SESSION,
            ctypes.c_char_p,
            _U64,
            ctypes.c_int,
            ctypes.c_int32,
            ctypes.POINTER(ctypes.c_uint32),
            ctypes.c_uint32,
            ctypes.POINTER(ctypes.c_uint32),
        ],
    ),
    "gln_declare_compressed": (
        ctypes.c_int,
        [
            _SESSION,
            ctypes.c_char_p,
            _U64,
            ctypes.c_int,
            ctypes.c_int,
            ctypes.c_int32,
            ctypes.POINTER(ctypes.c_uint32),
        ],
    ),
    "gln_declare_encoded": (
        ctypes.c_int,
        [
            _SESSION,
            ctypes.c_char_p,
            _U64,
            ctypes.POINTER(Codec),
            ctypes.c_int32,
            ctypes.POINTER(ctypes.c_uint32),
        ],
    ),
    "gln_declare_accumulated": (
        ctypes.c_int,
        [
            _SESSION,
            ctypes.c_char_p,
            _U64,
            ctypes.c_int,
            ctypes.c_int32,
            ctypes.c_uint32,
            ctypes.POINTER(ctypes.c_uint32),
        ],
    ),
    "gln_push_pull": (
        ctypes.c_int,
        [_SESSION, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(_U64)],
    ),
    "gln_push_pull_on_stream": (
        ctypes.c_int,
        [
            _SESSION,
            ctypes.c_uint32,
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_int,
            ctypes.c_int,
            ctypes.c_void_p,
            ctypes.POINTER(_U64),
        ],
    ),
    "gln_sum": (
        ctypes.c_int,
        [ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint32, ctypes.c_void_p, _U64],
    ),
    "gln_l1_norms": (ctypes.c_int, [ctypes.c_int, ctypes.c_void_p, _U64, _U64, ctypes.c_void_p]),
    "gln_add_group": (ctypes.c_int, [_SESSION, ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint32), ctypes.c_uint32]),
    "gln_remove_group": (ctypes.c_int, [_SESSION, ctypes.c_uint32]),
    "gln_has_arrived": (ctypes.c_int, [_SESSION, ctypes.c_uint32, ctypes.POINTER(ctypes.c_int)]),
    "gln_start_call": (ctypes.c_int, [_SESSION, ctypes.POINTER(Call), ctypes.POINTER(_U64)]),
    "gln_register_memory": (ctypes.c_int, [_SESSION, ctypes.c_void_p, _U64]),
    "gln_unregister_memory": (ctypes.c_int, [_SESSION, ctypes.c_void_p]),
    "gln_poll": (ctypes.c_int, [_SESSION, _U64, ctypes.POINTER(ctypes.c_int)]),
    "gln_wait": (ctypes.c_int, [_SESSION, _U64, ctypes.c_double]),
    "gln_wait_on_stream": (ctypes.c_int, [_SESSION, _U64, ctypes.c_double, ctypes.c_void_p]),
    "gln_next_done": (ctypes.c_int, [_SESSION, ctypes.c_double, ctypes.POINTER(_U64)]),
    "gln_broadcast": (ctypes.c_int, [_SESSION, ctypes.c_char_p, ctypes.c_void_p, _U64, ctypes.c_uint32]),
    "gln_step": (ctypes.c_int, [_SESSION]),
    "gln_count_saved": (ctypes.c_int, [_SESSION, ctypes.c_int64]),
    "gln_add_wait": (ctypes.c_int, [_SESSION, ctypes.c_double]),
    "gln_tell_packs": (ctypes.c_int, [_SESSION, ctypes.c_double, ctypes.c_double, ctypes.c_double]),
}


def library_candidates() -> Iterator[Path]:
    """Yields the paths at which load_library() looks for the library, in this order."""
    package = Path(__file__).resolve().parent
    yield package / LIBRARY_NAME
    yield package.parents[2] / LIBRARY_NAME
    yield package.parents[2] / "build" / "release" / "lib" / LIBRARY_NAME


def load_library() -> ctypes.CDLL:
    """Loads libgleaner and sets its signatures. Raises GleanerError if it cannot be loaded."""
    named = os.environ.get("GLEANER_LIBRARY")
    found = named or next((str(path) for path in library_candidates() if path.is_file()), LIBRARY_NAME)
    try:
        library = open_library(found)
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        looked = named or ", ".join(map(str, library_candidates()))
        raise GleanerError(
            f"cannot load {LIBRARY_NAME}: {error}. Looked at {looked}. In a source tree, build it with "
            "'cmake --preset release && cmake --build --preset release --target gleaner_shared'; elsewhere install "
            "the wheel, or set GLEANER_LIBRARY to the file."
        ) from error
    return library
