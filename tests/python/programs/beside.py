"""Sums in a process with other libraries: beside.py before|after NAME...

Each NAME is a Python module or the file of a shared library. The program loads them before or after gleaner.init(), and
then sums. A shared library exports its symbols to the whole process."""

from __future__ import annotations

import ctypes
import importlib
import sys

import gleaner
import numpy


def load(name: str) -> None:
    if name.endswith(".so"):
        ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
    else:
        importlib.import_module(name)


def main() -> None:
    when, *names = sys.argv[1:]
    if when == "before":
        for name in names:
            load(name)
    gleaner.init()
    if when == "after":
        for name in names:
            load(name)
    for step in range(3):
        total = gleaner.push_pull(numpy.full(100000, step + 1, numpy.float32), name="x", average=False)
        assert (total == (step + 1) * gleaner.size()).all()
    gleaner.shutdown()
    print("summed", flush=True)


main()
