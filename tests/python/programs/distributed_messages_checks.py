"""Checks sends and receives of backend gleaner of torch.distributed."""

from __future__ import annotations

import datetime
import sys

import gleaner.torch.distributed  # noqa: F401
import torch
import torch.distributed as dist
from checking import run_checks

dist.init_process_group("gleaner", timeout=datetime.timedelta(seconds=120))
RANK, SIZE = dist.get_rank(), dist.get_world_size()


def check_sends_match_by_tag() -> None:
    if RANK == 0:
        works = [dist.isend(torch.full((tag + 1,), float(tag)), 1, tag=tag) for tag in (3, 0, 2)]
    elif RANK == 1:
        tensors = {tag: torch.empty(tag + 1) for tag in (2, 3, 0)}
        works = [dist.irecv(tensor, 0, tag=tag) for tag, tensor in tensors.items()]
    else:
        works = []
    for work in works:
        work.wait()
    if RANK == 1:
        assert all((tensor == tag).all() for tag, tensor in tensors.items())


def check_receives_from_any_rank() -> None:
    if RANK:
        dist.send(torch.tensor([RANK]), 0)
    found = {}
    for _ in range(1, SIZE if RANK == 0 else 1):
        tensor = torch.zeros(1, dtype=torch.int64)
        source = dist.recv(tensor)
        found[source] = tensor.item()
    assert found == {rank: rank for rank in range(1, SIZE if RANK == 0 else 1)}
    dist.barrier()  # rank 0 must not receive what other ranks send later


def check_ranks_exchange_in_a_ring() -> None:
    given, taken = torch.full((5,), float(RANK)), torch.empty(5)
    ops = [dist.P2POp(dist.isend, given, (RANK + 1) % SIZE), dist.P2POp(dist.irecv, taken, (RANK - 1) % SIZE)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    assert (taken == (RANK - 1) % SIZE).all()


def check_receives_begin_in_the_order_of_their_posts() -> None:
    if RANK == 0:
        tensors = [torch.zeros(1) for _ in range(4)]
        works = [dist.irecv(tensors[0]), dist.irecv(tensors[1]), dist.irecv(tensors[2], 1), dist.irecv(tensors[3])]
        dist.barrier()
        for work in reversed(works):
            work.wait()
        assert [tensor.item() for tensor in tensors] == [1, 2, 3, 4]
    else:
        dist.barrier()
        for number in range(1, 5 if RANK == 1 else 1):
            dist.send(torch.tensor([float(number)]), 0)
    dist.barrier()


def check_receives_from_several_ranks() -> None:
    if RANK == 0:
        tensors = [torch.zeros(1) for _ in range(2 * (SIZE - 1))]
        works = [dist.irecv(tensor) for tensor in tensors]
        works[-1].wait()
        sources = [work.wait() and work._source_rank() for work in works]
        for rank in range(1, SIZE):
            assert [t.item() for t, source in zip(tensors, sources) if source == rank] == [rank, rank + 0.5]
    else:
        dist.send(torch.tensor([float(RANK)]), 0)
        dist.send(torch.tensor([RANK + 0.5]), 0)
    dist.barrier()


def check_empty_tensors_are_received() -> None:
    if RANK == 1:
        dist.send(torch.empty(0, 3), 0)
        dist.send(torch.empty(0), 0)
        dist.send(torch.ones(2), 0)
    if RANK == 0:
        assert dist.recv(torch.empty(0, 3)) == 1
        assert dist.recv(torch.empty(0), 1) == 1
        tensor = torch.zeros(2)
        assert dist.recv(tensor) == 1 and (tensor == 1).all()
    dist.barrier()


if __name__ == "__main__":
    run_checks({name: value for name, value in globals().items() if not sys.argv[1:] or name in sys.argv[1:]})
    dist.destroy_process_group()
