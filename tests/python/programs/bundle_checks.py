"""Checks gleaner.bundles, for two or more workers with one rank each."""

from __future__ import annotations

import gleaner
import numpy
from checking import data_of, raises, rank_order_sum, run_checks, same_bits
from gleaner import process
from gleaner.bundles import Bundles
from gleaner.errors import InvalidArgumentError


def bundles() -> Bundles:
    return process.current().attached(Bundles)


def everybodys(elements: int, seed: int, kind: str = "float32") -> list[numpy.ndarray]:
    return [data_of(rank, elements, seed).astype(kind) for rank in range(gleaner.size())]


def check_all_arrays_are_summed_in_rank_order() -> None:
    parts = {f".{number}": everybodys(10 + 5000 * number, number) for number in range(4)}
    parts["half"] = everybodys(77, 9, "float16")
    ours = [(name, each[gleaner.rank()]) for name, each in parts.items()]
    for _ in range(3):
        sums = bundles().push_pull(ours, average=False)
        assert all(same_bits(a, rank_order_sum(b)) for a, b in zip(sums, parts.values()))
        means = bundles().push_pull(ours)
        assert all(same_bits(a, rank_order_sum(b, gleaner.size())) for a, b in zip(means, parts.values()))


def check_empty_arrays_and_bundles() -> None:
    assert bundles().push_pull([]) == []
    none, scalar = bundles().push_pull([("a", numpy.empty((0, 3), "f4")), ("b", numpy.array(3.0))])
    assert none.shape == (0, 3)
    assert scalar.shape == () and scalar == 3.0
    assert bundles().broadcast([], 0) == []


def check_names_begin_with_the_given_name() -> None:
    bundles().push_pull([(".x", numpy.ones(3, "f4"))], name="layer")
    assert gleaner.tensor_plan("layer.x")["algorithm"]


def check_a_name_is_for_one_bundle() -> None:
    bundles().push_pull([(".x", numpy.ones(3, "f4"))], name="once")
    message = raises(InvalidArgumentError, lambda: bundles().push_pull([(".x", numpy.ones(4, "f4"))], name="once"))
    assert "'once' was used before" in message and "float32[3]" in message and "float32[4]" in message
    bundles().push_pull([(".x", numpy.ones(3, "f4"))], name="once")


def check_refused_arrays_are_named() -> None:
    one = numpy.ones(3, "f4")
    message = raises(TypeError, lambda: bundles().push_pull([("a", one), ("b", numpy.ones(3, "i8"))]))
    assert message.startswith("'b': cannot sum")
    message = raises(TypeError, lambda: bundles().push_pull([("a", one), ("c", numpy.ones(3, "i4"))]))
    assert message.startswith("'c': an average of int32")
    assert "'a'" in raises(InvalidArgumentError, lambda: bundles().push_pull([("a", one), ("b", one), ("a", one)]))
    assert "'a' holds" in raises(TypeError, lambda: bundles().broadcast([("a", numpy.array(["x", None]))], 0))
    assert "not a rank" in raises(InvalidArgumentError, lambda: bundles().broadcast([("a", one)], gleaner.size()))


def check_broadcast_copies_any_type() -> None:
    root = gleaner.size() - 1

    def of(rank: int) -> list[tuple[str, numpy.ndarray]]:
        return [
            ("a", numpy.array([rank, numpy.nan])),
            ("b", numpy.arange(6, dtype="i8").reshape(2, 3).T + rank),
            ("c", numpy.array(rank > 0)),
            ("d", numpy.empty((0, 2), "c16")),
        ]

    copies = bundles().broadcast(of(gleaner.rank()), root)
    assert all(same_bits(copy, array) for copy, (_, array) in zip(copies, of(root)))


def check_every_rank_tells_a_difference() -> None:
    is_last = gleaner.rank() == gleaner.size() - 1
    ours = [("same", numpy.ones(3, "f4")), ("b" if is_last else "a", numpy.ones(2 if is_last else 5, "f4"))]
    message = raises(InvalidArgumentError, lambda: bundles().push_pull(ours))
    last = gleaner.size() - 1
    assert f"rank 0 has 'a', float32[5], as array 1 and rank {last} has 'b', float32[2], as array 1" in message
    message = raises(InvalidArgumentError, lambda: bundles().broadcast(ours[:1], 1 if is_last else 0))
    assert "broadcast from rank 0 of 1 arrays" in message and "broadcast from rank 1 of 1 arrays" in message
    message = raises(InvalidArgumentError, lambda: bundles().push_pull(ours[:1], average=is_last))
    assert "sum of 1 arrays" in message and "average of 1 arrays" in message
    bundles().push_pull(ours[:1])  # the session goes on


gleaner.init()
run_checks(globals())
gleaner.shutdown()
