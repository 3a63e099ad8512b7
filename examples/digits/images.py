"""scikit-learn's handwritten digits as numpy arrays, with a fixed split and a fixed order in each epoch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

import numpy
from sklearn.datasets import load_digits

TEST_IMAGES = 360  # of 1,797 images; the split is the same on all ranks
SEED = 7

Batch = tuple[numpy.ndarray, numpy.ndarray]


class Images:
    """Rows of 64 pixels from 0 to 1, and their classes from 0 to 9. `test` is a Batch that training never sees."""

    def __init__(self) -> None:
        digits = load_digits()
        images, labels = (digits.data / 16.0).astype(numpy.float32), digits.target.astype(numpy.int32)
        order = numpy.random.default_rng(SEED).permutation(len(labels))
        self.test = images[order[:TEST_IMAGES]], labels[order[:TEST_IMAGES]]
        self._images, self._labels = images[order[TEST_IMAGES:]], labels[order[TEST_IMAGES:]]

    def batches(self, epoch: int, size: int) -> Iterator[Batch]:
        """Yields the batches of an epoch in shuffled order. Drops the last batch if it is smaller than the others."""
        order = numpy.random.default_rng([SEED, epoch]).permutation(len(self._labels))
        for start in range(0, len(order) - size + 1, size):
            chosen = order[start : start + size]
            yield self._images[chosen], self._labels[chosen]


def shard(batch: Batch, rank: int, ranks: int) -> Batch:
    """Returns this rank's share of a batch: every `ranks`-th example, starting with number `rank`."""
    images, labels = batch
    return images[rank::ranks], labels[rank::ranks]


def sha256(parameters: Iterable[numpy.ndarray]) -> str:
    digest = hashlib.sha256()
    for parameter in parameters:
        digest.update(numpy.asarray(parameter).tobytes())
    return digest.hexdigest()
