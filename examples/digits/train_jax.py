#!/usr/bin/env python3
"""Trains a small network on scikit-learn's handwritten digits with JAX and optax, by data parallelism through Gleaner.

    gleaner run --workers 2 --summers 1 -- python3 examples/digits/train_jax.py

Each rank takes its share of every batch. One compiled step computes gradients, averages them over all ranks and updates
the parameters. Every rank prints the SHA-256 of its parameters. `--reference N` trains without Gleaner, in one process:
it adds the gradients of N ranks in rank order, and its parameters are the same bit for bit.
"""

from __future__ import annotations

import argparse
from typing import Any, Callable

import gleaner.jax as gln
import jax
import numpy
import optax
from jax import numpy as jnp

from images import SEED, Images, sha256, shard

Step = Callable[[Any, Any, Any], tuple[Any, Any]]  # parameters, optimizer's state, batch -> parameters, state


def make_parameters(seed: int) -> dict[str, jax.Array]:
    first, second = jax.random.split(jax.random.key(seed))
    return {
        "hidden": {"weight": jax.random.normal(first, (64, 128)) / 8, "bias": jnp.zeros(128)},
        "output": {"weight": jax.random.normal(second, (128, 10)) / 11, "bias": jnp.zeros(10)},
    }


def logits(parameters: Any, images: jax.Array) -> jax.Array:
    hidden = jax.nn.relu(images @ parameters["hidden"]["weight"] + parameters["hidden"]["bias"])
    return hidden @ parameters["output"]["weight"] + parameters["output"]["bias"]


def loss_of(parameters: Any, batch: Any) -> jax.Array:
    images, labels = batch
    return optax.softmax_cross_entropy_with_integer_labels(logits(parameters, images), labels).mean()


def distributed_step(optimizer: optax.GradientTransformation) -> Step:
    @jax.jit
    def step(parameters: Any, state: Any, batch: Any) -> tuple[Any, Any]:
        gradients = jax.grad(loss_of)(parameters, batch)
        updates, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, updates), state

    return lambda parameters, state, batch: step(parameters, state, shard(batch, gln.rank(), gln.size()))


def reference_step(optimizer: optax.GradientTransformation, ranks: int) -> Step:
    gradient_of = jax.jit(jax.grad(loss_of))

    @jax.jit
    def update(parameters: Any, state: Any, gradients: Any) -> tuple[Any, Any]:
        updates, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, updates), state

    def average(*gradients: jax.Array) -> numpy.ndarray:
        total = numpy.asarray(gradients[0])
        for each in gradients[1:]:
            total = total + numpy.asarray(each)
        return total / numpy.float32(ranks)

    def step(parameters: Any, state: Any, batch: Any) -> tuple[Any, Any]:
        gradients = [gradient_of(parameters, shard(batch, rank, ranks)) for rank in range(ranks)]
        return update(parameters, state, jax.tree.map(average, *gradients))

    return step


def train(name: str, parameters: Any, optimizer: optax.GradientTransformation, step: Step, epochs: int) -> None:
    images, state = Images(), optimizer.init(parameters)
    for epoch in range(epochs):
        for batch in images.batches(epoch, 128):
            parameters, state = step(parameters, state, batch)
    accuracy = (logits(parameters, images.test[0]).argmax(1) == images.test[1]).mean()
    print(f"{name}: SHA-256 {sha256(jax.tree.leaves(parameters))}  test accuracy {accuracy:.2%}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--reference", type=int, metavar="N", help="train in one process, as N ranks do")
    arguments = parser.parse_args()
    adam = optax.adam(0.004)
    if arguments.reference is not None:
        train("reference", make_parameters(SEED), adam, reference_step(adam, arguments.reference), arguments.epochs)
        return
    gln.init()
    # Each rank starts with different parameters, to show that broadcast() gives all ranks those of rank 0.
    parameters = gln.broadcast(make_parameters(SEED + gln.rank()), root_rank=0)
    optimizer = gln.distributed(adam)
    train(f"rank {gln.rank()}", parameters, optimizer, distributed_step(optimizer), arguments.epochs)
    gln.shutdown()


if __name__ == "__main__":
    main()
