"""Starts the collectives of an operation on which the ranks of a process set agree.

All ranks start the same operations in the same order. Tensors on a GPU are copied to the host and back, except that
large gradients go by push_pull, which copies them itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, Callable

import torch
from torch.distributed import ReduceOp

from gleaner import exchange
from gleaner.exchange import PushPullOptions
from gleaner.horovod.torch.negotiation import Decision, Description
from gleaner.horovod.torch.requests import FOREVER, Request
from gleaner.torch.distributed import memory
from gleaner.torch.distributed.collectives import PUSH_PULL_BYTES, Collectives
from gleaner.torch.distributed.works import GleanerWork, RequestWork
from gleaner.torch.tensors import DATA_TYPES, TORCH

Started = tuple[list[GleanerWork], Callable[[], Any]]
_OPS = {
    "Sum": ReduceOp.SUM,
    "Average": ReduceOp.AVG,
    "Min": ReduceOp.MIN,
    "Max": ReduceOp.MAX,
    "Product": ReduceOp.PRODUCT,
}


class Execution:
    """Executes the operations of one process set, in one thread."""

    def __init__(self, collectives: Collectives, has_all_ranks: bool) -> None:
        self._collectives = collectives
        self._has_all_ranks = has_all_ranks
        self.rank, self.size = collectives.rank, collectives.size

    def start(self, request: Request, decision: Decision) -> Started:
        """Starts an operation. Returns its works, and the function that then returns its result in the caller's thread.

        Raises:
            GleanerError: The session has failed.
        """
        with contextlib.nullcontext() if request.stream is None else torch.cuda.stream(request.stream):
            return getattr(self, "_" + decision.example.kind)(request, decision)

    def start_fused(self, requests: Sequence[Request], decisions: Sequence[Decision]) -> list[Started]:
        """Starts reductions of fusion.fused() as one. Returns for each what start() returns.

        Raises:
            GleanerError: The session has failed.
        """
        op, _ = self._reduction(decisions[0].example, requests[0].tensors)
        hosts = [self._scaled_hosts(*each) for each in zip(requests, decisions)]
        work = self._collectives.all_reduce([host for own in hosts for host in own], op)
        return [([work], self._finish(*each)) for each in zip(requests, decisions, hosts)]

    def zeros(self, description: Description) -> Request:
        """Returns a request for an operation of others, with which a rank that has joined contributes zeros."""
        parts = zip(description.shapes, description.dtypes)
        return Request(description, [torch.zeros(shape, dtype=getattr(torch, dtype)) for shape, dtype in parts], True)

    def _allreduce(self, request: Request, decision: Decision) -> Started:
        wanted = decision.example
        op, factor = self._reduction(wanted, request.tensors)
        if len(request.tensors) == 1 and self._is_gradient_of_push_pull(wanted, op, request.tensors[0]):
            return self._push_pull(request, wanted, op, factor)
        hosts = self._scaled_hosts(request, decision)
        dtypes = dict.fromkeys(host.dtype for host in hosts)
        works = [self._collectives.all_reduce([each for each in hosts if each.dtype == dtype], op) for dtype in dtypes]
        return works, self._finish(request, decision, hosts)

    def _scaled_hosts(self, request: Request, decision: Decision) -> list[torch.Tensor]:
        """Returns the inputs of an allreduce in memory of the host, which its results will overwrite."""
        return [_scaled(_own(each, request.in_place), decision.example.scales[0]) for each in request.tensors]

    def _finish(self, request: Request, decision: Decision, hosts: Sequence[torch.Tensor]) -> Callable[[], Any]:
        """Returns the function that returns the results of an allreduce in the caller's thread."""
        _, factor = self._reduction(decision.example, request.tensors)

        def finish() -> list[torch.Tensor]:
            return [_result(_scaled(host, factor), each, request) for host, each in zip(hosts, request.tensors)]

        return finish

    def _is_gradient_of_push_pull(self, wanted: Description, op: Any, tensor: torch.Tensor) -> bool:
        size = tensor.numel() * tensor.element_size()
        is_sum = op in (ReduceOp.SUM, ReduceOp.AVG)
        is_gradient = wanted.priority is not None and tensor.dtype in DATA_TYPES
        return self._has_all_ranks and is_gradient and is_sum and size >= PUSH_PULL_BYTES

    def _push_pull(self, request: Request, wanted: Description, op: Any, factor: float) -> Started:
        """Sums a gradient, which has a place in the plan, a priority, and may stay on its GPU."""
        tensor = request.tensors[0].detach()
        name = f"horovod.{wanted.name}.{wanted.dtypes[0]}.{tensor.numel()}"
        options = PushPullOptions(op == ReduceOp.AVG, name, wanted.priority, in_place=True)
        session = self._collectives.session
        handle = exchange.push_pull_async(session, TORCH, _scaled(tensor, wanted.scales[0]), options)
        work = RequestWork(session, [handle], lambda: None, wanted.name, [tensor], FOREVER)

        def finish() -> list[torch.Tensor]:
            _scaled(tensor, factor)
            return request.tensors

        return [work], finish

    def _reducescatter(self, request: Request, decision: Decision) -> Started:
        wanted = decision.example
        op, factor = self._reduction(wanted, request.tensors)
        works, parts = [], []
        for tensor in request.tensors:
            rows = [len(part) for part in torch.tensor_split(torch.empty(tensor.shape[0]), self.size)]
            source = memory.given(tensor)
            if wanted.scales[0] != 1.0:
                source = _scaled(source.clone(), wanted.scales[0])
            output = source.new_empty((rows[0], *tensor.shape[1:]))
            works.append(self._collectives.reduce_scatter(output, [_padded(source, rows)], op))
            parts.append(output[: rows[self.rank]])

        def finish() -> list[torch.Tensor]:
            return [_scaled(part, factor).to(each.device) for part, each in zip(parts, request.tensors)]

        return works, finish

    def _allgather(self, request: Request, decision: Decision) -> Started:
        works, results = [], []
        for place, tensor in enumerate(request.tensors):
            rows = [each.shapes[place][0] for each in decision.by_rank if each is not None]
            source = memory.given(tensor)
            result = source.new_empty((sum(rows), *tensor.shape[1:]))
            if len(set(rows)) == 1:
                works.append(self._collectives.all_gather([result], source))
            else:
                works.append(self._collectives.all_to_all(result.split(rows), [source] * self.size))
            results.append(result)
        return works, lambda: [result.to(each.device) for result, each in zip(results, request.tensors)]

    def _broadcast(self, request: Request, decision: Decision) -> Started:
        hosts = [_own(each, request.in_place) for each in request.tensors]
        works = [self._collectives.broadcast(host, decision.example.root) for host in hosts]
        return works, lambda: [_result(host, each, request) for host, each in zip(hosts, request.tensors)]

    def _alltoall(self, request: Request, decision: Decision) -> Started:
        tensor = request.tensors[0]
        received = [each.numbers[self.rank] for each in decision.by_rank if each is not None]
        sent = request.description.numbers
        source = memory.given(tensor)[: sum(sent)]
        result = source.new_empty((sum(received), *tensor.shape[1:]))
        work = self._collectives.all_to_all_single(result, source, received, sent)
        return [work], lambda: (result.to(tensor.device), received)

    def _barrier(self, _: Request, __: Decision) -> Started:
        return [], lambda: None

    _add_process_set = _barrier

    def _reduction(self, wanted: Description, tensors: list[torch.Tensor]) -> tuple[Any, float]:
        """Returns the reduction that collectives make, and the factor for its result."""
        factor = wanted.scales[1]
        if wanted.op == "Average" and not (tensors[0].is_floating_point() or tensors[0].is_complex()):
            return ReduceOp.SUM, factor / self.size  # of integers, cut off
        return _OPS[wanted.op], factor


def _padded(source: torch.Tensor, rows: list[int]) -> torch.Tensor:
    """Returns the parts of a tensor, of so many rows each, with as many rows each as the first part has."""
    if rows[0] * len(rows) == len(source):
        return source
    padded = source.new_zeros((len(rows), rows[0], *source.shape[1:]))
    for place, part in enumerate(source.split(rows)):
        padded[place, : len(part)] = part
    return padded


def _own(tensor: torch.Tensor, in_place: bool) -> torch.Tensor:
    """Returns memory of the host with the elements of a tensor: its own if results may overwrite it, or a copy."""
    host = memory.given(tensor)
    is_same = not tensor.is_cuda and host.data_ptr() == tensor.data_ptr()
    return host.clone() if is_same and not in_place else host


def _scaled(tensor: torch.Tensor, factor: float) -> torch.Tensor:
    """Multiplies a tensor in place and returns it: integers as float64, cut off, and 16-bit floats as float32."""
    if factor != 1.0:
        with torch.no_grad():
            if not (tensor.is_floating_point() or tensor.is_complex()):
                tensor.copy_(tensor.double() * factor)
            elif tensor.element_size() < 4:
                tensor.copy_(tensor.float() * factor)
            else:
                tensor.mul_(factor)
    return tensor


def _result(host: torch.Tensor, tensor: torch.Tensor, request: Request) -> torch.Tensor:
    """Returns the result of a request for one tensor: the tensor itself, if results overwrite it."""
    if not request.in_place:
        return host.to(tensor.device)
    memory.take_over(tensor, host)
    return tensor
