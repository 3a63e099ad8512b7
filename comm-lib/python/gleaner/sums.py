"""Sums arrays of this rank with the kernels of the library, in a given order, with the bits of a push_pull."""

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

    Any thread may call it, without a session.

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
    if status != _abi.OK:
        raise error_of(status, library.gln_last_error().decode(errors="replace"))
