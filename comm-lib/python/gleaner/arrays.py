"""Gives gleaner.exchange access to numpy arrays."""

from __future__ import annotations

import numpy

from gleaner.session import DataType

# numpy has no bfloat16; the package ml_dtypes registers a type of this name.
_DATA_TYPES = {
    "float32": DataType.FLOAT32,
    "float64": DataType.FLOAT64,
    "float16": DataType.FLOAT16,
    "bfloat16": DataType.BFLOAT16,
    "int32": DataType.INT32,
}


class NumpyArrays:
    """Implements exchange.Arrays for numpy arrays."""

    def data_type(self, array: numpy.ndarray) -> DataType:
        if not isinstance(array, numpy.ndarray):
            raise TypeError(f"expected a numpy array, not {type(array).__name__}")
        found = _DATA_TYPES.get(array.dtype.name)
        if found is None or not array.dtype.isnative:
            raise TypeError(f"cannot sum arrays of {array.dtype!r}; native {', '.join(_DATA_TYPES)} can be summed")
        return found

    def elements(self, array: numpy.ndarray) -> int:
        return array.size

    def contiguous(self, array: numpy.ndarray) -> numpy.ndarray:
        return array if array.flags.c_contiguous else array.copy(order="C")

    def empty_like(self, array: numpy.ndarray) -> numpy.ndarray:
        return numpy.empty(array.shape, dtype=array.dtype)

    def hold(self, array: numpy.ndarray) -> numpy.ndarray:
        return array

    def address(self, array: numpy.ndarray) -> int:
        return array.ctypes.data

    def copy(self, target: numpy.ndarray, source: numpy.ndarray) -> None:
        target[...] = source

    def gpu(self, source: numpy.ndarray, output: numpy.ndarray) -> None:
        return None


NUMPY = NumpyArrays()
