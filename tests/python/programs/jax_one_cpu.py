"""Averages arrays inside jax.jit, step after step without waiting, in processes that may use a single CPU."""

from __future__ import annotations

import os


def main() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # before the imports, which count the CPUs
    import gleaner.jax as gln
    import jax
    from jax import numpy as jnp

    gln.init()

    @jax.jit
    def step(x: jax.Array) -> jax.Array:
        tree = gln.average({"a": x @ x, "b": x * 2})
        return tree["a"] + tree["b"]

    x = jnp.full((1000, 1000), gln.rank() + 1, jnp.float32)
    for _ in range(10):
        x = step(x)
        x = x / jnp.max(x)  # JAX queues it in the pool that has the callback's thread, too
    jax.block_until_ready(x)
    gln.shutdown()
    print("averaged", flush=True)


main()
