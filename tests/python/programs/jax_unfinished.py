"""Leaves the job while a callback of a compiled program has not begun: jax_unfinished.py shutdown|exit."""

from __future__ import annotations

import sys

import gleaner.jax as gln
import jax
from jax import numpy as jnp


def main() -> None:
    gln.init()
    average = jax.jit(gln.average)
    x = jnp.ones((2000, 2000))
    jax.block_until_ready(average(x))
    for _ in range(3):
        x = average(x @ x)
    print("queued", flush=True)
    if sys.argv[1] == "shutdown":
        gln.shutdown()


main()
