"""Several collectives of one kind that a program calls together: their small tensors travel as one message.

Large tensors travel on their own, since their copies would cost more than the messages. Source: GradientFlow §3.1,
which does so for the all-reduces of gradients.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Callable, Optional

import torch

from gleaner._abi import Collective
from gleaner.torch.distributed import memory
from gleaner.torch.distributed.collectives import Collectives
from gleaner.torch.distributed.works import GleanerWork, JoinedWork
from gleaner.torch.packs import kind_of, size_of

# Bytes of a rank's tensor up to which it travels together with others.
MOST_BYTES = 1 << 20


def all_gather(
    collectives: Collectives,
    outputs: Sequence[Sequence[torch.Tensor]],
    inputs: Sequence[torch.Tensor],
    timeout: Optional[float],
) -> GleanerWork:
    """Gathers each of `inputs` of all ranks into the tensors with its number in `outputs`, as Collectives.all_gather().

    Raises:
        InvalidArgumentError: As in Collectives.all_gather().
    """

    def together(numbers: Sequence[int]) -> GleanerWork:
        return _all_gather_as_one(
            collectives, [outputs[number] for number in numbers], [inputs[number] for number in numbers], timeout
        )

    def alone(number: int) -> GleanerWork:
        return collectives.all_gather(outputs[number], inputs[number], timeout)

    return _joined([(size_of(each), None) for each in inputs], together, alone)


def reduce_scatter(
    collectives: Collectives,
    outputs: Sequence[torch.Tensor],
    inputs: Sequence[torch.Tensor],
    op: Any,
    timeout: Optional[float],
) -> GleanerWork:
    """Reduces each of `inputs` in parts into the tensor with its number in `outputs`, as Collectives.reduce_scatter().

    Raises:
        InvalidArgumentError: As in Collectives.reduce_scatter().
    """

    def together(numbers: Sequence[int]) -> GleanerWork:
        targets = [outputs[number] for number in numbers]
        for number in numbers:
            collectives.check_whole(inputs[number], outputs[number])
        parts = [memory.given(inputs[number]).reshape(collectives.size, -1) for number in numbers]
        target = torch.empty(sum(each.numel() for each in targets), dtype=targets[0].dtype)
        work = collectives.reduce_scatter(target, [torch.cat(parts, dim=1)], op, timeout)

        def finish() -> None:
            for each, part in zip(targets, target.split([each.numel() for each in targets])):
                memory.take_over(each, part)

        work.add_step(finish, targets)
        return work

    def alone(number: int) -> GleanerWork:
        return collectives.reduce_scatter(outputs[number], [inputs[number]], op, timeout)

    return _joined([(size_of(each), kind_of(each)) for each in inputs], together, alone)


def _joined(
    tensors: Iterable[tuple[int, Hashable]],
    together: Callable[[Sequence[int]], GleanerWork],
    alone: Callable[[int], GleanerWork],
) -> GleanerWork:
    """Returns a work of tensors that have these sizes and kinds; small ones of one kind are a work together."""
    small: dict[Hashable, list[int]] = {}
    single = []
    for number, (size, kind) in enumerate(tensors):
        small.setdefault(kind, []).append(number) if 0 < size <= MOST_BYTES else single.append(number)
    works = [together(numbers) if len(numbers) > 1 else alone(numbers[0]) for numbers in small.values()]
    works += [alone(number) for number in single]
    return works[0] if len(works) == 1 else JoinedWork(works)


def _all_gather_as_one(
    collectives: Collectives,
    outputs: Sequence[Sequence[torch.Tensor]],
    inputs: Sequence[torch.Tensor],
    timeout: Optional[float],
) -> GleanerWork:
    """Gathers tensors, none of which is empty, as the bytes of all of them."""
    targets = [collectives.rows(into, given) for into, given in zip(outputs, inputs)]
    source = torch.cat([memory.given(each).reshape(-1).view(torch.uint8) for each in inputs])
    gathered = torch.empty((collectives.size, source.numel()), dtype=torch.uint8)

    def finish() -> None:
        for (rows, take_over), piece in zip(targets, gathered.split([size_of(each) for each in inputs], dim=1)):
            rows.view(collectives.size, -1).view(torch.uint8).copy_(piece)
            take_over()

    blocks = memory.block(source), memory.block(gathered)
    into = [each for of_input in outputs for each in of_input]
    return collectives.start(Collective.ALL_GATHER, "all_gather", *blocks, 0, into, timeout, finish)
