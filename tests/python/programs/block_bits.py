"""Averages a tensor in blocks, several times: block_bits.py '{"method": "top-k", "kept": 8, …}' ELEMENTS STEPS.

The sums of some elements overflow in step OVERFLOWS. Each rank prints a line of JSON: the "sha256" of each average, and
the "plan" of the tensor.
"""

from __future__ import annotations

import json
import sys

import gleaner
import numpy
from contributions import OVERFLOWS, bench_reference, of_step

METHODS = {
    "int8": gleaner.Method.INT8,
    "int4": gleaner.Method.INT4,
    "sign": gleaner.Method.SIGN,
    "top-k": gleaner.Method.TOP_K,
    "random-k": gleaner.Method.RANDOM_K,
}


def main(codec: dict[str, object], elements: int, steps: int) -> None:
    gleaner.init()
    session = gleaner.process.current()
    sent_as = gleaner.Codec(METHODS[codec.pop("method")], **codec)
    tensor = session.declare("blocks", elements, gleaner.DataType.FLOAT32, sent_as=sent_as)
    digests = []
    for step in range(steps):
        values = of_step(step, session.rank_info.rank, elements)
        address = values.ctypes.data
        handle = session.push_pull_async(tensor, address, address, gleaner.Op.AVERAGE, "blocks", lambda: None)
        session.synchronize(handle)
        assert numpy.isfinite(values).all() == (step != OVERFLOWS), step
        values[numpy.isnan(values)] = numpy.nan
        digests.append(bench_reference.sha256([values]))
    print(json.dumps({"sha256": digests, "plan": gleaner.tensor_plan("blocks")}), flush=True)
    gleaner.shutdown()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
