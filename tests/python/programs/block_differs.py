"""Ranks compress a tensor differently. Each prints the error that it gets."""

from __future__ import annotations

import gleaner
import numpy
from checking import raises

if __name__ == "__main__":
    gleaner.init()
    session = gleaner.process.current()
    codec = gleaner.Codec(gleaner.Method.RANDOM_K, kept=16, seed=session.rank_info.rank)
    values = numpy.ones(5000, numpy.float32)
    tensor = session.declare("x", values.size, gleaner.DataType.FLOAT32, sent_as=codec)

    def start() -> None:
        address = values.ctypes.data
        session.synchronize(session.push_pull_async(tensor, address, address, gleaner.Op.SUM, "x", lambda: None))

    print(raises(gleaner.InvalidArgumentError, start), flush=True)
