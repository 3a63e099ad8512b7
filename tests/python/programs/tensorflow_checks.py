"""Checks gleaner.tensorflow, for two or more workers with one rank each."""

from __future__ import annotations

import tempfile
from pathlib import Path

import gleaner.tensorflow as gln
import keras
import numpy
import tensorflow as tf
from checking import data_of, raises, rank_order_sum, run_checks, same_bits
from gleaner.errors import InvalidArgumentError


def mean_of(elements: int, seed: int = 0) -> numpy.ndarray:
    return rank_order_sum([data_of(rank, elements, seed) for rank in range(gln.size())], gln.size())


def ours(elements: int, seed: int = 0) -> tf.Tensor:
    return tf.constant(data_of(gln.rank(), elements, seed))


def small_model(seed: int) -> keras.Model:
    keras.utils.set_random_seed(seed)
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(8, activation="relu"), keras.layers.Dense(1)])


def bits_are_equal(values: list[numpy.ndarray]) -> bool:
    """Returns whether these arrays have the same bits on all ranks."""
    mine = [value.tobytes() for value in values]
    return gln.allreduce(tf.constant(mine == gln.broadcast_object(mine), tf.float32), op=gln.Sum) == gln.size()


def check_sums_eagerly_and_in_functions() -> None:
    inside = tf.function(lambda tensor: gln.allreduce(tensor))
    for elements in (1, 1000, 70_001):
        assert same_bits(gln.allreduce(ours(elements)).numpy(), mean_of(elements))
        assert same_bits(inside(ours(elements)).numpy(), mean_of(elements))
    assert gln.push_pull(tf.constant([2, 3]), average=False).numpy().tolist() == [2 * gln.size(), 3 * gln.size()]
    assert gln.allreduce(tf.constant(1.5), op=gln.Sum).numpy() == 1.5 * gln.size()
    half = gln.allreduce(tf.ones(3, tf.bfloat16))
    assert half.dtype == tf.bfloat16 and half.shape == (3,)


def check_groups_of_tensors() -> None:
    def grouped() -> list[tf.Tensor]:
        return gln.grouped_allreduce([ours(100, 1), ours(50, 2), tf.Variable(ours(7, 3))], name="grouped")

    function = tf.function(lambda: gln.grouped_allreduce([ours(100, 1), ours(50, 2), ours(7, 3)], name="grouped"))
    for results in (grouped(), function()):
        expected = [mean_of(100, 1), mean_of(50, 2), mean_of(7, 3)]
        assert all(same_bits(a.numpy(), b) for a, b in zip(results, expected))
    assert gln.tensor_plan("grouped.2")["algorithm"]


def check_calls_in_functions_keep_their_order() -> None:
    @tf.function
    def many(tensor: tf.Tensor) -> list[tf.Tensor]:
        # None of these needs another one's result, and each has another shape.
        return [gln.allreduce(tensor[:count] * count, op=gln.Sum) for count in range(1, 9)]

    for _ in range(5):
        for count, total in enumerate(many(tf.ones(8)), 1):
            assert total.numpy().tolist() == [count * gln.size()] * count


def check_refused_tensors() -> None:
    assert "int16" in raises(TypeError, lambda: gln.allreduce(tf.ones(3, tf.int16)))
    assert "average of int32" in raises(TypeError, lambda: tf.function(lambda: gln.allreduce(tf.constant([1])))())
    slices = tf.IndexedSlices(tf.ones((1, 2)), tf.constant([0]), tf.constant([4, 2]))
    assert "sparse_as_dense" in raises(TypeError, lambda: gln.allreduce(slices))
    assert "Average or Sum" in raises(ValueError, lambda: gln.allreduce(tf.ones(3), op="max"))
    assert "strings" in raises(TypeError, lambda: gln.broadcast(tf.constant(["a"])))
    assert "name=" in raises(TypeError, lambda: gln.push_pull(tf.ones(3), "a name"))


def check_every_rank_tells_a_difference() -> None:
    different = tf.ones(3 if gln.rank() == 0 else 4)
    message = raises(InvalidArgumentError, lambda: gln.allreduce(different))
    assert "rank 0 has '.0', float32[3]" in message and "rank 1 has '.0', float32[4]" in message
    inside = raises(tf.errors.OpError, lambda: tf.function(lambda: gln.allreduce(different))())
    assert "ranks differ: rank 0 has" in inside


def check_broadcast() -> None:
    root = gln.size() - 1
    variables = [tf.Variable([gln.rank(), 2]), tf.Variable(gln.rank() > 0), keras.Variable(numpy.float64(gln.rank()))]
    gln.broadcast_variables(variables, root_rank=root)
    assert variables[0].numpy().tolist() == [root, 2] and bool(variables[1].numpy()) and variables[2].numpy() == root
    variables[0].assign([gln.rank(), 3])
    tf.function(lambda: gln.broadcast_variables(variables, root_rank=0))()
    assert variables[0].numpy().tolist() == [0, 3]
    assert gln.broadcast(tf.constant(gln.rank()), root_rank=root).numpy() == root


def check_a_tape_averages() -> None:
    weights, unused, rows = tf.Variable(tf.ones(5)), tf.Variable(1.0), tf.Variable(tf.ones((3, 2)))

    def loss() -> tf.Tensor:
        return tf.reduce_sum(weights * ours(5, 4)) + tf.reduce_sum(tf.gather(rows, [gln.rank() % 3]))

    def gradients(sparse_as_dense: bool = True) -> dict[str, tf.Tensor]:
        with gln.DistributedGradientTape(tf.GradientTape(), sparse_as_dense=sparse_as_dense) as tape:
            value = loss()
        return tape.gradient(value, {"a": weights, "b": unused, "c": rows})

    for found in (gradients(), tf.function(gradients)()):
        assert same_bits(found["a"].numpy(), mean_of(5, 4))
        assert found["b"] is None
        assert numpy.allclose(found["c"].numpy().sum(), 2)
    assert "sparse" in raises(TypeError, lambda: gradients(sparse_as_dense=False))
    with tf.GradientTape() as plain:
        value = loss()
    assert same_bits(gln.DistributedGradientTape(plain).gradient(value, weights).numpy(), mean_of(5, 4))


def check_an_optimizer_applies_averages() -> None:
    variable = tf.Variable(tf.zeros(6))
    optimizer = gln.DistributedOptimizer(keras.optimizers.SGD(1.0, clipnorm=1.0))
    optimizer.apply_gradients([(ours(6, 5), variable)])
    mean = mean_of(6, 5)
    assert numpy.allclose(variable.numpy(), -mean / max(1.0, numpy.linalg.norm(mean)), atol=1e-6)
    assert type(optimizer).__name__ == "SGD" and isinstance(optimizer, keras.optimizers.SGD)
    assert "already" in raises(InvalidArgumentError, lambda: gln.DistributedOptimizer(optimizer))
    assert "Keras optimizer" in raises(TypeError, lambda: gln.DistributedOptimizer("sgd"))


def fitted(optimizer: keras.optimizers.Optimizer, **options: object) -> tuple[keras.Model, dict[str, list[float]]]:
    model = small_model(gln.rank())
    model.compile(optimizer, loss="mse", metrics=["mae"], **options)
    generator = numpy.random.default_rng(gln.rank())
    x, y = generator.standard_normal((64, 4)).astype("f4"), generator.standard_normal((64, 1)).astype("f4")
    callbacks = [gln.BroadcastGlobalVariablesCallback(0), gln.MetricAverageCallback()]
    history = model.fit(x, y, batch_size=16, epochs=2, verbose=0, validation_data=(x, y), callbacks=callbacks)
    return model, history.history


def check_fit_keeps_ranks_equal() -> None:
    for options in ({}, {"run_eagerly": True}):
        model, history = fitted(gln.DistributedOptimizer(keras.optimizers.Adam(0.01)), **options)
        assert bits_are_equal([*model.get_weights(), *(each.numpy() for each in model.optimizer.variables)])
        assert sorted(history) == ["loss", "mae", "val_loss", "val_mae"]
        assert bits_are_equal([numpy.array(sorted(history.items(), key=str)[0][1])])
        assert model.optimizer.iterations.numpy() == 8


def check_ranks_skip_overflowing_steps_together() -> None:
    scaled = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1), initial_scale=4.0)
    optimizer, variable = gln.DistributedOptimizer(scaled), tf.Variable(1.0)
    step = tf.function(lambda gradient: optimizer.apply([gradient], [variable]))
    optimizer.build([variable])
    step(tf.constant(numpy.inf if gln.rank() == 0 else 4.0, tf.float32))
    assert variable.numpy() == 1.0
    step(tf.constant(2.0))
    assert variable.numpy() < 1.0


def check_saved_models_have_a_plain_optimizer() -> None:
    model, _ = fitted(gln.DistributedOptimizer(keras.optimizers.Adam(0.01)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.keras"
        model.save(path)
        loaded = keras.models.load_model(path)
    assert type(loaded.optimizer) is keras.optimizers.Adam
    assert loaded.optimizer.iterations.numpy() == 8
    gln.DistributedOptimizer(loaded.optimizer)


gln.init()
run_checks(globals())
gln.shutdown()
