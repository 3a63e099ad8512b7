"""Sums different numbers in each step, and checks each sum, until a file exists: changing.py FILE [PAUSE [gpu]].

Prints "summing" when the sums work, and at the end "N steps". A wrong sum ends the program with exit status 1, an error
of Gleaner with 3. After each step the program sleeps for PAUSE seconds (default: 0). With "gpu" the numbers
are in the memory of a GPU."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Callable

import gleaner
import numpy

ELEMENTS = 1 << 18


def sum_on_host(data: numpy.ndarray) -> numpy.ndarray:
    return gleaner.push_pull(data, name="changing", average=False)


def sum_on_gpu() -> Callable[[numpy.ndarray], numpy.ndarray]:
    import cuda_caller

    tensor = cuda_caller.Program().empty(ELEMENTS, "float32")

    def sum_of(data: numpy.ndarray) -> numpy.ndarray:
        tensor.write(data)
        return cuda_caller.push_pull(tensor, "changing", in_place=True).read()

    return sum_of


def main(stop: Path, pause: float, sum_of: Callable[[numpy.ndarray], numpy.ndarray]) -> None:
    gleaner.init()
    rank, size = gleaner.rank(), gleaner.size()
    places = numpy.arange(ELEMENTS, dtype=numpy.float32) % 1009
    step, stopping = 0, False
    while not stopping:
        data = places * (rank + 1) + step % 4096
        data[0] = stop.exists()
        total = sum_of(data)
        expected = places * (size * (size + 1) // 2) + size * (step % 4096)
        assert (total[1:] == expected[1:]).all(), f"rank {rank}: the sum of step {step} is wrong"
        stopping = total[0] > 0  # in the same step on every rank
        step += 1
        time.sleep(pause)
        if step == 3:
            print("summing", flush=True)
    gleaner.shutdown()
    print(f"{step} steps", flush=True)


if __name__ == "__main__":
    try:
        use = sum_on_gpu() if sys.argv[3:] == ["gpu"] else sum_on_host
        main(Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 0, use)
    except gleaner.GleanerError as error:
        print(error, file=sys.stderr, flush=True)
        gleaner.shutdown(failed=True)
        sys.exit(3)
