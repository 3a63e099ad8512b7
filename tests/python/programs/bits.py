"""Sums tensors whose bits docs/bench_reference.py can compute, too: bits.py TENSOR...

Each TENSOR is a JSON object with "name" and what contributions.py needs; with "average": true its result is the average
over all ranks, else the sum. A tensor with "sent_as" is compressed. All tensors are in flight together. Each rank
prints a line of JSON: by name the result's "sha256", the tensor's "plan", and the "results" without repetitions of a
tensor that has constants.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import gleaner
import numpy
from contributions import bench_reference, contribution

TYPES = {
    "fp32": gleaner.DataType.FLOAT32,
    "fp64": gleaner.DataType.FLOAT64,
    "fp16": gleaner.DataType.FLOAT16,
    "bf16": gleaner.DataType.BFLOAT16,
    "int32": gleaner.DataType.INT32,
}


def start(session: gleaner.Session, tensor: dict[str, Any]) -> int:
    """Starts a request by addresses, since numpy lacks bf16. The handle gives an array of stored elements."""
    mine = contribution(tensor, session.rank_info.rank)
    result = numpy.empty_like(mine)

    def of(memory: tuple[numpy.ndarray, numpy.ndarray] = (mine, result)) -> numpy.ndarray:
        return memory[1]

    sent_as = TYPES[tensor["sent_as"]] if tensor.get("sent_as") else None
    number = session.declare(tensor["name"], tensor["elements"], TYPES[tensor["dtype"]], sent_as=sent_as)
    op = gleaner.Op.AVERAGE if tensor.get("average") else gleaner.Op.SUM
    return session.push_pull_async(number, mine.ctypes.data, result.ctypes.data, op, tensor["name"], of)


def main(tensors: list[dict[str, Any]]) -> None:
    gleaner.init()
    session = gleaner.process.current()
    handles = [start(session, tensor) for tensor in tensors]
    report = {}
    for tensor, handle in zip(tensors, handles):
        result, name = session.synchronize(handle), tensor["name"]
        report[name] = {"sha256": bench_reference.sha256([result]), "plan": gleaner.tensor_plan(name)}
        if "values" in tensor:
            report[name]["results"] = numpy.unique(bench_reference.DATA_TYPES[tensor["dtype"]].widen(result)).tolist()
    print(json.dumps(report), flush=True)
    gleaner.shutdown()


if __name__ == "__main__":
    main([json.loads(word) for word in sys.argv[1:]])
