"""Computes the bits of sums of tensors that travel in blocks, with numpy and without the job (docs/compression.md).

Sums keeps the state of all workers, so its results follow from all push_pulls of a tensor since the session opened:

    sums = Sums(Codec("top-k", kept=8), "x", workers=2, elements=5000)
    first = sums.reduced([values_of_rank_0, values_of_rank_1])

Values are finite, and their sums may overflow; those of a block are not so small that they become zeros (below
2**-100).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional

import bench_reference
import numpy as np
from bench_reference import Schedule, splitmix64

BLOCK = 1024
PLACES = np.arange(BLOCK, dtype=np.uint32)


@dataclass(frozen=True)
class Codec:
    """How a tensor travels. `method`: "int8", "int4", "sign", "top-k" or "random-k"; the rest as in gleaner.Codec."""

    method: str
    kept: int = 0
    seed: int = 0
    error_feedback: bool = True
    momentum: float = 0.0

    def key(self, name: str, number: int, worker: int) -> np.uint32:
        """Returns the key of a worker's random numbers in push_pull `number`, which counts from 1, of a tensor."""
        stream = 0 if self.method == "random-k" else worker + 1
        mixed = splitmix64(np.array([self.seed], np.uint64)) ^ np.uint64(hash_of(name))
        mixed = splitmix64(splitmix64(mixed) ^ np.uint64(number))
        return np.uint32(splitmix64(mixed ^ np.uint64(stream))[0] >> np.uint64(32))

    def contribution(self, values: np.ndarray, counts: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Returns the values that a contribution stands for, as `values` of shape (blocks, BLOCK).

        Args:
            values: The exact values; those behind the end of the tensor are zeros.
            counts: By block, how many values the tensor has.
            keys: By block, the key of random numbers.
        """
        if self.method == "sign":
            return signs(values, counts)
        return self.result(values, keys)

    def result(self, values: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Returns the values that a result stands for."""
        if self.method == "top-k":
            return top(values, self.kept)
        if self.method == "random-k":
            return np.where(chosen_places(keys, self.kept), values, np.float32(0))
        coded = dithered(values, keys) if self.method == "int4" else rounded(values)
        return np.where(np.isfinite(magnitudes(values)), coded, np.float32(np.nan))


def hash_of(name: str) -> int:
    """Returns the FNV-1a hash of a tensor's name."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def mixed(x: np.ndarray) -> np.ndarray:
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D)
    x = (x ^ (x >> np.uint32(15))) * np.uint32(0x846CA68B)
    return x ^ (x >> np.uint32(16))


def magnitudes(values: np.ndarray) -> np.ndarray:
    return np.abs(values).max(axis=1, keepdims=True)


def inverse(levels: int, largest: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.where(largest > 0, np.float32(levels) / largest, np.float32(0))


def rounded(values: np.ndarray) -> np.ndarray:
    largest = magnitudes(values)
    codes = np.rint(values * inverse(127, largest)) + np.float32(0)  # -0 becomes 0
    return codes * (largest / np.float32(127))


def dithered(values: np.ndarray, keys: np.ndarray) -> np.ndarray:
    largest = magnitudes(values)
    keyed = mixed(keys ^ largest.view(np.uint32))
    uniform = (mixed(keyed + PLACES) >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)
    codes = np.trunc((values * inverse(7, largest) + uniform) + np.float32(8))
    return (np.clip(codes, 1, 15) - np.float32(8)) * (largest / np.float32(7))


def signs(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    lanes = np.zeros((len(values), 16), np.float32)
    for part in range(BLOCK // 16):
        lanes = lanes + np.abs(values[:, part * 16 : (part + 1) * 16])
    total = np.zeros(len(values), np.float32)
    for lane in range(16):
        total = total + lanes[:, lane]
    return np.copysign((total / counts.astype(np.float32))[:, None], values)


def top(values: np.ndarray, kept: int) -> np.ndarray:
    order = np.argsort(-np.abs(values), axis=1, kind="stable")[:, :kept]
    result = np.zeros_like(values)
    np.put_along_axis(result, order, np.take_along_axis(values, order, axis=1), axis=1)
    return result


def chosen_places(keys: np.ndarray, kept: int) -> np.ndarray:
    part, number = BLOCK // kept, np.arange(kept, dtype=np.uint32)
    places = number * np.uint32(part) + mixed(keys + number) % np.uint32(part)
    chosen = np.zeros((len(keys), BLOCK), bool)
    np.put_along_axis(chosen, places.astype(np.int64), True, axis=1)
    return chosen


class Sums:
    """The sums of one tensor of fp32 that travels in blocks."""

    def __init__(self, codec: Codec, name: str, workers: int, elements: int, local_ranks: int = 1) -> None:
        self.codec, self.name, self.elements, self.local_ranks = codec, name, elements, local_ranks
        blocks = -(-elements // BLOCK)
        self.shape = (blocks, BLOCK)
        self.residuals = np.zeros((workers, *self.shape), np.float32)
        self.momenta = np.zeros((workers, *self.shape), np.float32)
        self.number = 0
        self.counts = np.full(blocks, BLOCK)
        self.counts[-1:] = elements - (blocks - 1) * BLOCK

    @np.errstate(over="ignore", invalid="ignore")
    def reduced(
        self,
        values: Sequence[np.ndarray],
        schedule: Optional[Schedule] = None,
        partitions: Optional[Sequence[int]] = None,
        ranks: Optional[Sequence[int]] = None,
        average: bool = False,
    ) -> np.ndarray:
        """Returns the result of the next push_pull. Arguments are those of bench_reference.reduced().

        Partitions have numbers of blocks.
        """
        self.number += 1
        sent, keys = [], []
        for worker in range(len(self.residuals)):
            of_worker = values[worker * self.local_ranks : (worker + 1) * self.local_ranks]
            keys.append(
                mixed(
                    self.codec.key(self.name, self.number, worker) ^ mixed(np.arange(len(self.counts), dtype=np.uint32))
                )
            )
            sent.append(self._contribution(worker, bench_reference.added(of_worker), keys[-1][:, None]))
        if schedule is None or bench_reference.is_gather(schedule):
            total = bench_reference.added(sent)
        else:
            by_block = [each.T for each in sent]
            total = bench_reference.staged(by_block, schedule, partitions, ranks).T
        if average:
            total = total / np.float32(len(values))
        # Owners round at random by the bits of the sum, and all ranks have the same places.
        result_keys = (
            keys[0][:, None] if self.codec.method == "random-k" else np.zeros((len(self.counts), 1), np.uint32)
        )
        result = self.codec.result(np.ascontiguousarray(total), result_keys)
        if self.codec.method == "top-k" and self.codec.error_feedback:
            self._put_back(sent, np.ascontiguousarray(total))
        has_overflowed = ~np.isfinite(result).all(axis=1)
        self.residuals[:, has_overflowed] = self.momenta[:, has_overflowed] = 0
        return result.reshape(-1)[: self.elements]

    def _contribution(self, worker: int, values: np.ndarray, keys: np.ndarray) -> np.ndarray:
        exact = np.zeros(self.shape, np.float32)
        exact.reshape(-1)[: self.elements] = values
        if self.codec.momentum > 0:
            factor = np.float32(self.codec.momentum)
            self.momenta[worker] = factor * self.momenta[worker] + exact
            exact += factor * self.momenta[worker]
        if self.codec.error_feedback:
            exact += self.residuals[worker]
        sent = self.codec.contribution(exact, self.counts, keys)
        self.residuals[worker] = exact - sent
        self.residuals[worker].reshape(-1)[self.elements :] = 0
        return sent

    def _put_back(self, sent: list[np.ndarray], total: np.ndarray) -> None:
        order = np.argsort(-np.abs(total), axis=1, kind="stable")[:, : self.codec.kept]
        is_in_result = np.zeros(self.shape, bool)
        np.put_along_axis(is_in_result, order, True, axis=1)
        for worker, contribution in enumerate(sent):
            self.residuals[worker] += np.where(is_in_result, np.float32(0), contribution)
