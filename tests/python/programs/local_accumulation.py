"""Adds to a running sum with several local ranks per worker, and makes wrong calls, which must fail."""

from __future__ import annotations

import gleaner
import numpy
from checking import raises
from gleaner import DataType, InvalidArgumentError, Op

if __name__ == "__main__":
    gleaner.init()
    mine = numpy.full(50_000, gleaner.rank() + 1, numpy.int32)
    own = sum(
        gleaner.rank() // gleaner.local_size() * gleaner.local_size() + 1 + i for i in range(gleaner.local_size())
    )
    for step in range(5):
        total = gleaner.accumulate(mine, "counter")
        others = total - own * (step + 1)
        assert (others == others[0]).all() or gleaner.size() > gleaner.local_size()
        assert (others >= 0).all()
    gleaner.push_pull(numpy.ones(1, numpy.float32), name="the sum has the contributions of all ranks")
    total = gleaner.accumulate(numpy.zeros_like(mine), "counter")
    assert (total == 5 * sum(range(gleaner.size() + 1))).all(), total
    with_other_name = raises(InvalidArgumentError, lambda: gleaner.push_pull(mine, name="counter", average=False))
    assert "declared twice" in with_other_name, with_other_name
    with_type = raises(InvalidArgumentError, lambda: gleaner.accumulate(numpy.ones(1, numpy.float64), "wide"))
    assert "fp64" in with_type, with_type
    raises(InvalidArgumentError, lambda: gleaner.accumulate(numpy.ones(1, numpy.float32), "far", staleness=-1))
    session = gleaner.process.session
    tensor = session.declare("only summed", mine.size, DataType.INT32)
    with_op = raises(
        InvalidArgumentError,
        lambda: session.push_pull_async(tensor, mine.ctypes.data, mine.ctypes.data, Op.ACCUMULATE, "x", lambda: None),
    )
    assert "was not declared to be accumulated" in with_op, with_op
    print("passed", flush=True)
    gleaner.shutdown()
