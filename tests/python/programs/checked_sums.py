"""Sums random numbers until a file exists: checked_sums.py FILE.

Prints "summing" when the sums work. At the end it prints the number of steps and the SHA-256 of the sums of all steps.
The first element of each tensor tells the other ranks whether this rank has seen the file; the digest leaves it out."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import gleaner
import numpy

TENSORS = {"a": 50_000, "b": 3_000, "c": 120_000}  # elements


def data_of(rank: int, step: int, name: str) -> numpy.ndarray:
    numbers = numpy.random.default_rng([rank, step, ord(name)])
    # Values of very different sizes, so that almost every sum is rounded.
    return (numbers.standard_normal(TENSORS[name]) * 10.0 ** numbers.integers(-3, 4, TENSORS[name])).astype("f4")


def main(file: Path) -> None:
    gleaner.init()
    digest = hashlib.sha256()
    step, stopping = 0, False
    while not stopping:
        seen = float(file.exists())
        handles = []
        for name in TENSORS:
            data = data_of(gleaner.rank(), step, name)
            data[0] = seen
            handles.append(gleaner.push_pull_async(data, name=name, average=False))
        for handle in handles:
            total = gleaner.synchronize(handle)
            stopping = bool(total[0] > 0)  # in the same step on every rank
            digest.update(total[1:].tobytes())
        step += 1
        if step == 3:
            print("summing", flush=True)
    gleaner.shutdown()
    print(f"steps {step} sha256 {digest.hexdigest()}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
