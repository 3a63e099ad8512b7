"""Cuts the gradients of an optimizer into chunks, and chunks into packets. Source: GradientFlow §3.2. Pure.

Example: chunks of 4 elements, and parameters of 6, 1 and 3 elements, in the order in which backward() makes their
gradients:

    elements    0 1 2 3 4 5 6 7 8 9 - -
    parameter   0 0 0 0 0 0 1 2 2 2        the last chunk is filled with zeros
    chunk       0 0 0 0 1 1 1 1 2 2 2 2
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy

Runs = Sequence[tuple[int, int]]  # begins and ends of elements of a parameter, in the order of memory


class Chunks:
    """The chunks of a sequence of parameters.

    Args:
        sizes: Numbers of elements of the parameters.
        elements: Number of elements of a chunk.
    """

    def __init__(self, sizes: Sequence[int], elements: int) -> None:
        self._begins = [0, *itertools.accumulate(sizes)]
        self.elements = elements
        self.number = -(-self._begins[-1] // elements)

    def of(self, parameter: int) -> range:
        """Returns the chunks that have elements of a parameter."""
        begin, end = self._begins[parameter], self._begins[parameter + 1]
        return range(begin // self.elements, -(-end // self.elements) if end > begin else begin // self.elements)

    def runs(self, parameter: int, chosen: numpy.ndarray) -> Runs:
        """Returns the elements of a parameter that are in chosen chunks, as pairs of begin and end.

        `chosen` is a bool for each chunk. Neighbouring chosen chunks make one run.
        """
        begin, end = self._begins[parameter], self._begins[parameter + 1]
        runs: list[tuple[int, int]] = []
        for chunk in self.of(parameter):
            if not chosen[chunk]:
                continue
            first = max(chunk * self.elements, begin) - begin
            last = min((chunk + 1) * self.elements, end) - begin
            if runs and runs[-1][1] == first:
                runs[-1] = (runs[-1][0], last)
            else:
                runs.append((first, last))
        return runs


def most_important(norms: numpy.ndarray, number: int) -> numpy.ndarray:
    """Returns the chunks with the largest norms in ascending order; of equal norms those of lower chunks count more."""
    order = numpy.argsort(-norms, kind="stable")
    return numpy.sort(order[:number])


def packet_sizes(chunks: int, most: int) -> list[int]:
    """Returns the numbers of chunks of the packets that carry `chunks` chunks: `most` each, then powers of two.

    So a job has few sizes of packets, whatever number of chunks its steps send, and no packet has unused room.
    """
    full, rest = divmod(chunks, most)
    return [most] * full + [1 << bit for bit in reversed(range(rest.bit_length())) if rest >> bit & 1]
