"""Checks gleaner.jax, for two or more workers with one rank each."""

from __future__ import annotations

import gleaner.jax as gln
import jax
import numpy
import optax
from checking import data_of, raises, rank_order_sum, run_checks, same_bits
from gleaner.errors import InvalidArgumentError
from jax import numpy as jnp


def tree_of(rank: int) -> dict[str, object]:
    return {
        "dense": [jnp.asarray(data_of(rank, 6000)).reshape(60, 100), jnp.float32(rank)],
        "half": jnp.asarray(data_of(rank, 33, 1)).astype(jnp.bfloat16),
        "none": None,
    }


def assert_same(tree: object, expected: object) -> None:
    assert jax.tree.structure(tree) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(tree), jax.tree.leaves(expected)):
        assert same_bits(numpy.asarray(a), numpy.asarray(b))


def summed(average: bool) -> object:
    trees = [tree_of(rank) for rank in range(gln.size())]
    divide_by = gln.size() if average else 1
    return jax.tree.map(lambda *parts: rank_order_sum([numpy.asarray(each) for each in parts], divide_by), *trees)


def check_trees_outside_and_inside_jit() -> None:
    ours = tree_of(gln.rank())
    assert_same(gln.average(ours), summed(True))
    assert_same(gln.push_pull(ours, average=False), summed(False))
    assert_same(jax.jit(gln.average)(ours), summed(True))
    assert_same(jax.jit(lambda tree: gln.push_pull(tree, average=False))(ours), summed(False))
    assert isinstance(gln.average({"a": 1.0})["a"], jax.Array)


def check_large_leaves_inside_jit() -> None:
    factor = jnp.ones((700, 700)) / 700

    @jax.jit
    def step(x: jax.Array) -> jax.Array:
        tree = gln.average({"a": x @ factor, "b": x * 2})
        return tree["a"] + tree["b"] / 2

    x = jnp.full((2000, 700), gln.rank(), jnp.float32)
    for _ in range(5):
        x = step(x) / 2
    assert abs(float(x[0, 0]) - (gln.size() - 1) / 2) < 1e-3


def check_calls_inside_jit_keep_their_order() -> None:
    @jax.jit
    def many(x: jax.Array) -> list[jax.Array]:
        # None of these needs another one's result, and each has another type or shape.
        return [gln.push_pull(x[:count] * count, average=False) for count in range(1, 9)]

    for count, total in enumerate(many(jnp.ones(8)), 1):
        assert total.tolist() == [count * gln.size()] * count


def check_callbacks_are_ordered() -> None:
    assert "ordered=True" in str(jax.make_jaxpr(gln.average)(jnp.ones(3)))
    assert "ordered=True" in str(jax.make_jaxpr(gln.broadcast)(jnp.ones(3)))


def check_loops_inside_jit() -> None:
    @jax.jit
    def loop(x: jax.Array) -> jax.Array:
        return jax.lax.scan(lambda carry, _: (gln.push_pull(carry, average=False), None), x, length=3)[0]

    assert loop(jnp.ones(4)).tolist() == [gln.size() ** 3] * 4


def check_names_are_paths() -> None:
    gln.average({"a": [jnp.ones(3)], "b": jnp.ones(2)}, name="params")
    assert gln.tensor_plan("params['a'][0]")["algorithm"]
    assert gln.tensor_plan("params['b']")["algorithm"]
    message = raises(InvalidArgumentError, lambda: gln.average({"a": jnp.ones(3)}, name="params"))
    assert "'params' was used before" in message


def check_refused_leaves_are_named() -> None:
    for call in (gln.average, jax.jit(gln.average)):
        message = raises(TypeError, lambda call=call: call({"w": jnp.ones(3), "ok": jnp.ones(3, jnp.int16)}))
        assert "['ok']" in message and "int16" in message
    assert "int32" in raises(TypeError, lambda: gln.average([jnp.ones(3), jnp.arange(3)]))
    assert gln.push_pull([jnp.arange(3)], average=False)[0].tolist() == [0, gln.size(), 2 * gln.size()]
    assert "key_data" in raises(TypeError, lambda: gln.broadcast(jax.random.key(1)))
    assert "name=" in raises(TypeError, lambda: gln.push_pull(jnp.ones(3), "a name"))


def check_every_rank_tells_a_difference() -> None:
    ours = {"a": jnp.ones(3), "b" if gln.rank() == 0 else "c": jnp.ones(3)}
    message = raises(InvalidArgumentError, lambda: gln.average(ours))
    assert "rank 0 has \"['b']\"" in message and "rank 1 has \"['c']\"" in message
    inside = raises(Exception, lambda: jax.block_until_ready(jax.jit(gln.average)(ours)))
    assert "ranks differ: rank 0 has" in inside


def check_broadcast_copies_any_type() -> None:
    def of(rank: int) -> object:
        return {"a": jnp.arange(5) + rank, "b": [jnp.array(rank > 0), jnp.float32(rank)], "c": jnp.zeros((0, 2))}

    root = gln.size() - 1
    assert_same(gln.broadcast(of(gln.rank()), root_rank=root), of(root))
    assert_same(jax.jit(lambda tree: gln.broadcast(tree, root_rank=root))(of(gln.rank())), of(root))


def check_an_optimizer_sees_averages() -> None:
    chain = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(0.1))
    optimizer = gln.DistributedOptimizer(chain)
    params = {"w": jnp.ones(50), "b": jnp.ones(())}

    def gradients(rank: int) -> object:
        return {"w": jnp.asarray(data_of(rank, 50)), "b": jnp.float32(rank)}

    update = jax.jit(lambda grads, state: optimizer.update(grads, state, params))
    updates, state = update(gradients(gln.rank()), optimizer.init(params))
    everybodys = [gradients(rank) for rank in range(gln.size())]
    mean = jax.tree.map(lambda *parts: rank_order_sum([numpy.asarray(each) for each in parts], gln.size()), *everybodys)
    expected, expected_state = jax.jit(lambda grads, state: chain.update(grads, state, params))(
        mean, chain.init(params)
    )
    for a, b in zip(jax.tree.leaves((updates, state)), jax.tree.leaves((expected, expected_state))):
        assert numpy.allclose(a, b, rtol=1e-6, atol=0)
    agreed = gln.broadcast(updates)
    assert_same(updates, agreed)


gln.init()
run_checks(globals())
gln.shutdown()
