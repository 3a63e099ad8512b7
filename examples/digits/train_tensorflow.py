#!/usr/bin/env python3
"""Trains a small Keras model on scikit-learn's handwritten digits, by data parallelism through Gleaner.

    gleaner run --workers 2 --summers 1 -- python3 examples/digits/train_tensorflow.py

Each rank takes its share of every batch. One tf.function computes gradients, averages them over all ranks and updates
the parameters. Every rank prints the SHA-256 of its parameters. `--reference N` trains without Gleaner, in one process:
it adds the gradients of N ranks in rank order, and its parameters are the same bit for bit.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import gleaner.tensorflow as gln
import keras
import numpy
import tensorflow as tf

from images import SEED, Images, sha256, shard

LOSS = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def make_model(seed: int) -> keras.Model:
    keras.utils.set_random_seed(seed)
    layers = [keras.Input((64,)), keras.layers.Dense(128, activation="relu"), keras.layers.Dense(10)]
    return keras.Sequential(layers)


def gradients_of(model: keras.Model, images: Any, labels: Any) -> list[tf.Tensor]:
    with tf.GradientTape() as tape:
        loss = LOSS(labels, model(images, training=True))
    return tape.gradient(loss, model.trainable_variables)


def distributed_step(model: keras.Model, optimizer: keras.optimizers.Optimizer) -> Callable[[Any], None]:
    @tf.function
    def step(images: Any, labels: Any) -> None:
        optimizer.apply(gradients_of(model, images, labels), model.trainable_variables)

    return lambda batch: step(*shard(batch, gln.rank(), gln.size()))


def reference_step(model: keras.Model, optimizer: keras.optimizers.Optimizer, ranks: int) -> Callable[[Any], None]:
    gradients_of_share = tf.function(lambda images, labels: gradients_of(model, images, labels))
    apply = tf.function(lambda gradients: optimizer.apply(gradients, model.trainable_variables))

    def step(batch: Any) -> None:
        shares = [gradients_of_share(*shard(batch, rank, ranks)) for rank in range(ranks)]
        sums = [share.numpy() for share in shares[0]]
        for share in shares[1:]:
            sums = [total + each.numpy() for total, each in zip(sums, share)]
        apply([tf.constant(total / numpy.float32(ranks)) for total in sums])

    return step


def train(name: str, model: keras.Model, step: Callable[[Any], None], epochs: int) -> None:
    images = Images()
    for epoch in range(epochs):
        for batch in images.batches(epoch, 128):
            step(batch)
    accuracy = (model(images.test[0]).numpy().argmax(1) == images.test[1]).mean()
    print(f"{name}: SHA-256 {sha256(model.get_weights())}  test accuracy {accuracy:.2%}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--reference", type=int, metavar="N", help="train in one process, as N ranks do")
    arguments = parser.parse_args()
    adam = keras.optimizers.Adam(0.004)
    if arguments.reference is not None:
        model = make_model(SEED)
        adam.build(model.trainable_variables)
        train("reference", model, reference_step(model, adam, arguments.reference), arguments.epochs)
        return
    gln.init()
    # Each rank starts with different parameters, to show that broadcast_variables() gives all ranks those of rank 0.
    model = make_model(SEED + gln.rank())
    optimizer = gln.DistributedOptimizer(adam)
    optimizer.build(model.trainable_variables)
    gln.broadcast_variables([*model.weights, *optimizer.variables], root_rank=0)
    train(f"rank {gln.rank()}", model, distributed_step(model, optimizer), arguments.epochs)
    gln.shutdown()


if __name__ == "__main__":
    tf.config.threading.set_intra_op_parallelism_threads(1)  # a single thread adds in a fixed order
    tf.config.threading.set_inter_op_parallelism_threads(1)
    main()
