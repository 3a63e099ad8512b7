"""Sums arrays of this rank, and takes norms of them, with the kernels of the library, in a fixed order."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence

from gleaner import _abi
from gleaner._abi import DataType, Op
from gleaner.errors import error_of

_library = functools.cache(_abi.load_library)


def sum_memory(data_type: DataType, op: Op, sources: Sequence[int], output: int, elements: int) -> None:
    """Sums the elements at the addresses of `sources`, in this order, into those at `output` (gln_sum()).

    The bits are those of a push_pull. Any thread may call it, without a session.

    Args:
        data_type: Type of all elements.
        op: SUM, or AVERAGE, which divides the sum by the number of sources.
        sources: Addresses; at least one.
        output: Address of the result; may be one of the sources, and else must not overlap them.
        elements: Number of elements at each address.

    Raises:
        InvalidArgumentError: The type has no such operation, or memory overlaps in part.
        GleanerError: libgleaner.so cannot be loaded.
    """
    library = _library()
    status = library.gln_sum(data_type, op, (ctypes.c_void_p * len(sources))(*sources), len(sources), output, elements)
    _check(library, status)


def l1_norms(data_type: DataType, values: int, rows: int, columns: int, norms: int) -> None:
    """Writes the L1 norms of rows, as float32, with the same bits on all processors (gln_l1_norms()).

    Any thread may call it, without a session.

    Args:
        data_type: Type of all elements: a type of floats.
        values: Address of the rows, which lie one after another.
        rows: Number of rows.
        columns: Elements of each row.
        norms: Address of the result, one float32 for each row.

    Raises:
        InvalidArgumentError: The type is INT32.
        GleanerError: libgleaner.so cannot be loaded.
    """
    library = _library()
    _check(library, library.gln_l1_norms(data_type, values, rows, columns, norms))


def _check(library: ctypes.CDLL, status: int) -> None:
    if status != _abi.OK:
        raise error_of(status, library.gln_last_error().decode(errors="replace"))
