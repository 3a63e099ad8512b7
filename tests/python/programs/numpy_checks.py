"""Checks the numpy API, for any number of workers with one rank each."""

from __future__ import annotations

import time

import gleaner
import numpy
from checking import data_of, raises, rank_order_sum, run_checks, same_bits

TYPES = ["float32", "float64", "float16", "int32"]


def everybodys(kind: str, elements: int) -> list[numpy.ndarray]:
    scale = 1 if kind != "int32" else 1000
    return [(data_of(rank, elements) * scale).astype(kind) for rank in range(gleaner.size())]


def check_who_we_are() -> None:
    assert 0 <= gleaner.rank() < gleaner.size()
    assert gleaner.local_rank() == 0
    assert gleaner.local_size() == 1
    ranks = gleaner.push_pull(numpy.eye(gleaner.size(), dtype=numpy.int32)[gleaner.rank()], name="ranks", average=False)
    assert ranks.tolist() == [1] * gleaner.size()


def check_sums_are_exact_for_every_type() -> None:
    for kind in TYPES:
        for elements in (1, 1000, 200_001):
            parts = everybodys(kind, elements)
            total = gleaner.push_pull(parts[gleaner.rank()], name=f"sum.{kind}.{elements}", average=False)
            assert same_bits(total, rank_order_sum(parts)), f"{kind}, {elements} elements"


def check_averages_are_rounded_once() -> None:
    for kind in ("float32", "float64", "float16"):
        parts = everybodys(kind, 5000)
        mean = gleaner.push_pull(parts[gleaner.rank()], name=f"mean.{kind}")
        assert same_bits(mean, rank_order_sum(parts, gleaner.size())), kind


def check_average_of_integers_is_refused() -> None:
    assert "average=False" in raises(TypeError, lambda: gleaner.push_pull(numpy.ones(3, numpy.int32), name="integers"))


def check_other_types_are_refused_by_name() -> None:
    for kind in ("int64", "complex64", "bool", ">f4"):
        message = raises(TypeError, lambda kind=kind: gleaner.push_pull(numpy.ones(3, kind), name="other"))
        assert "float32, float64, float16, bfloat16, int32" in message
    assert "name=" in raises(TypeError, lambda: gleaner.push_pull(numpy.ones(3, numpy.float32), "a name"))
    assert "list" in raises(TypeError, lambda: gleaner.push_pull([1.0], name="other"))


def check_results_may_overwrite_the_array() -> None:
    parts = [data_of(rank, 24).reshape(4, 6) for rank in range(gleaner.size())]
    for layout in ("C", "F"):
        array = numpy.array(parts[gleaner.rank()], order=layout)
        gleaner.declare(array, name=f"in place.{layout}")
        assert gleaner.push_pull_inplace(array, average=False, name=f"in place.{layout}") is array
        assert same_bits(array.copy(order="C"), rank_order_sum(parts))
    part = numpy.zeros((3, 8), numpy.float32)[:, ::2]
    part[...] = gleaner.rank()
    assert gleaner.synchronize(gleaner.push_pull_async_inplace(part, average=False, name="gaps")) is part
    assert (part == sum(range(gleaner.size()))).all()
    frozen = numpy.ones(3, numpy.float32)
    frozen.flags.writeable = False
    for overwrite in (gleaner.push_pull_inplace, gleaner.push_pull_async_inplace, gleaner.broadcast_):
        assert "read-only" in raises(TypeError, lambda overwrite=overwrite: overwrite(frozen))
        assert "list" in raises(TypeError, lambda overwrite=overwrite: overwrite([1.0]))
    assert "list" in raises(TypeError, lambda: gleaner.declare([1.0], name="a list"))


def check_broadcasts_may_overwrite_the_array() -> None:
    for value in (numpy.arange(6).reshape(2, 3).T, numpy.array(7.5), numpy.array([numpy.nan, -0.0]), numpy.array("ab")):
        array = value.copy(order="K")
        if gleaner.rank() > 0:
            array[...] = numpy.zeros_like(array)
        assert gleaner.broadcast_(array) is array
        assert array.tobytes() == value.tobytes()


def check_shapes_and_strides_are_kept() -> None:
    parts = [data_of(rank, 24).reshape(2, 3, 4) for rank in range(gleaner.size())]
    total = gleaner.push_pull(parts[gleaner.rank()].transpose(2, 0, 1), name="strided", average=False)
    assert same_bits(total, rank_order_sum(parts).transpose(2, 0, 1).copy())
    assert gleaner.push_pull(numpy.float32(2.0), name="scalar").shape == ()


def check_nothing_sums_to_nothing() -> None:
    assert gleaner.push_pull(numpy.empty((0, 3), numpy.float32), name="empty").shape == (0, 3)


def check_nan_and_infinity_pass_through() -> None:
    part = numpy.array([numpy.nan, numpy.inf, 1.0], numpy.float32)
    total = gleaner.push_pull(part, name="special", average=False)
    assert numpy.isnan(total[0])
    assert total[1] == numpy.inf
    assert total[2] == gleaner.size()


def check_many_at_once_in_any_order() -> None:
    parts = [[data_of(rank, 3000, seed) for seed in range(20)] for rank in range(gleaner.size())]
    mine = parts[gleaner.rank()]
    order = numpy.random.default_rng(gleaner.rank()).permutation(20)  # different on each rank
    handles = {seed: gleaner.push_pull_async(mine[seed], name=f"many.{seed}", average=False) for seed in order}
    for seed in reversed(range(20)):
        assert same_bits(gleaner.synchronize(handles[seed]), rank_order_sum([part[seed] for part in parts]))


def check_unnamed_push_pulls_reuse_names() -> None:
    a, b = numpy.ones(8, numpy.float32), numpy.full(8, 2, numpy.float32)
    for _ in range(3):
        handles = [gleaner.push_pull_async(a), gleaner.push_pull_async(b)]
        assert gleaner.synchronize(handles[0]).tolist() == [1] * 8
        assert gleaner.synchronize(handles[1]).tolist() == [2] * 8
    assert gleaner.process.current().unused_name("unnamed.float32.8") == "unnamed.float32.8.0"


def check_poll_becomes_true() -> None:
    handle = gleaner.push_pull_async(numpy.ones(10, numpy.float32), name="polled")
    while not gleaner.poll(handle):
        pass
    assert gleaner.synchronize(handle).tolist() == [1] * 10
    assert str(handle) in raises(gleaner.InvalidArgumentError, lambda: gleaner.synchronize(handle))


def check_steps_repeat() -> None:
    for step in range(30):
        parts = [data_of(rank, 4000, step) for rank in range(gleaner.size())]
        assert same_bits(
            gleaner.push_pull(parts[gleaner.rank()], name="repeated", average=False), rank_order_sum(parts)
        ), f"step {step}"


def check_registered_memory_gives_the_same_bits() -> None:
    array = numpy.zeros(70_001, numpy.float32)
    gleaner.register_memory(array)
    message = raises(gleaner.InvalidArgumentError, lambda: gleaner.register_memory(array[5:10]))
    assert "registered already" in message
    for step in range(3):
        parts = [data_of(rank, array.size, step) for rank in range(gleaner.size())]
        array[:] = parts[gleaner.rank()]
        assert same_bits(gleaner.push_pull(array, name="registered", average=False), rank_order_sum(parts))
        piece = gleaner.push_pull(array[100:200], name="a piece", average=False)
        assert same_bits(piece, rank_order_sum([part[100:200] for part in parts]))
    gleaner.unregister_memory(array)
    assert "no memory" in raises(gleaner.InvalidArgumentError, lambda: gleaner.unregister_memory(array))
    assert "without gaps" in raises(gleaner.InvalidArgumentError, lambda: gleaner.register_memory(array[::2]))


def check_one_push_pull_per_name_at_a_time() -> None:
    # The other ranks begin only after rank 0 has asked twice, so the push_pull of rank 0 is in flight until then.
    big = numpy.ones(1 << 20, numpy.float32)
    handle = gleaner.push_pull_async(big, name="busy") if gleaner.rank() == 0 else None
    if handle is not None:
        assert "busy" in raises(gleaner.FailedPreconditionError, lambda: gleaner.push_pull_async(big, name="busy"))
    gleaner.push_pull(numpy.ones(1, numpy.float32), name="turn")
    handle = gleaner.push_pull_async(big, name="busy") if handle is None else handle
    assert gleaner.synchronize(handle)[0] == 1


def check_declared_otherwise_is_refused() -> None:
    gleaner.push_pull(numpy.ones(4, numpy.float32), name="four")
    message = raises(gleaner.InvalidArgumentError, lambda: gleaner.push_pull(numpy.ones(5, numpy.float32), name="four"))
    assert "four" in message


def check_broadcasts_are_bit_exact() -> None:
    root = gleaner.size() - 1
    for size in (0, 1, 7, 1000, 300_000):
        there = numpy.random.default_rng(size).integers(0, 255, size, dtype=numpy.uint8)
        here = there if gleaner.rank() == root else numpy.zeros_like(there)
        assert same_bits(gleaner.broadcast(here, root), there)
    table = numpy.arange(6, dtype=numpy.int64).reshape(2, 3)
    assert same_bits(gleaner.broadcast(table * (gleaner.rank() == 0)), table)


def check_arrays_of_other_shape_or_type_are_not_broadcast() -> None:
    """They would fit into the same message: sizes are rounded up."""
    others = [numpy.ones(5), numpy.ones(3, numpy.float32), numpy.ones((3, 1)), numpy.ones((1,) * 30 + (3,))]
    for other in others:
        if gleaner.rank() == 0:
            gleaner.broadcast(numpy.ones(3))
        else:
            message = raises(gleaner.InvalidArgumentError, lambda other=other: gleaner.broadcast(other))
            assert f"{other.shape} {other.dtype}" in message and "(3,) float64" in message, message
        assert gleaner.broadcast(numpy.full(3, gleaner.rank())).tolist() == [0] * 3


def check_objects_are_broadcast() -> None:
    for value in ({"rate": 0.1, "names": ["a", "b"]}, None, "x" * 70_000):
        assert gleaner.broadcast_object(value if gleaner.rank() == 0 else "mine") == value


def check_names_and_priorities_are_taken_whole() -> None:
    array = numpy.ones(3, numpy.float32)
    for call in (gleaner.push_pull, gleaner.accumulate):
        assert "NUL" in raises(ValueError, lambda call=call: call(array, name="cut\0here"))
        for priority in (2**31, -(2**31) - 1):
            message = raises(ValueError, lambda call=call, value=priority: call(array, name="far", priority=value))
            assert "priority" in message and str(priority) in message, message
    for call in (gleaner.poll, gleaner.synchronize):
        assert "not ndarray" in raises(TypeError, lambda call=call: call(array))
    assert "not 5" in raises(TypeError, lambda: gleaner.push_pull(array, name=5))
    assert "UTF-8" in raises(ValueError, lambda: gleaner.push_pull(array, name="\udc80"))
    assert "'high'" in raises(TypeError, lambda: gleaner.push_pull(array, name="urgent", priority="high"))
    assert gleaner.push_pull(array, name="numpy", priority=numpy.int64(1)).tolist() == [1] * 3
    assert gleaner.push_pull(array, name="last", priority=2**31 - 1).tolist() == [1] * 3


def check_wrong_declarations_are_refused() -> None:
    declare, refused = gleaner.process.current().declare, gleaner.InvalidArgumentError
    told = raises(refused, lambda: declare("a", 1, gleaner.DataType.FLOAT32, sent_as="int8"))
    assert "gleaner.Codec" in told and "'int8'" in told, told
    assert "gleaner.DataType" in raises(refused, lambda: declare("a", 1, "float32"))
    assert "elements" in raises(TypeError, lambda: declare("a", 1.5, gleaner.DataType.FLOAT32))


def check_tensor_plan_tells_how_a_tensor_is_summed() -> None:
    assert "no tensor 'unknown'" in raises(gleaner.InvalidArgumentError, lambda: gleaner.tensor_plan("unknown"))
    raises(TypeError, lambda: gleaner.tensor_plan(3))
    for elements, name in ((0, "planned.empty"), (3, "planned.small"), (5_000_000, "planned.large")):
        gleaner.push_pull(numpy.ones(elements, numpy.float32), name=name)
        plan = gleaner.tensor_plan(name)
        assert plan["algorithm"] == "summers" and plan["ranks"] == [] and plan["from"] == 0, plan
        assert sum(plan["partition_bytes"]) == 4 * elements, plan
    assert len(plan["partition_bytes"]) > 1


def check_stats_count() -> None:
    while gleaner.stats().steps < 30:  # statistics arrive with a delay
        time.sleep(0.01)
    stats = gleaner.stats()
    assert stats.bytes > 30 * 16_000
    assert stats.communication_seconds > 0


def check_after_shutdown_is_an_error() -> None:
    gleaner.shutdown()
    gleaner.shutdown()
    assert not gleaner.is_initialized()
    for call in (gleaner.rank, gleaner.stats, lambda: gleaner.push_pull(numpy.ones(1, numpy.float32), name="late")):
        assert "gleaner.init()" in raises(gleaner.FailedPreconditionError, call)


if __name__ == "__main__":
    assert "gleaner.init()" in raises(gleaner.GleanerError, gleaner.rank)
    gleaner.init()
    run_checks(globals())
