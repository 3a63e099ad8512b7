"""Checks of backend gleaner that need PyTorch 2: operations and functions that PyTorch 1.13 lacks."""

from __future__ import annotations

import datetime
import itertools
import sys

import gleaner.torch.distributed  # noqa: F401
import torch
import torch.distributed as dist
from checking import data_of, raises, rank_order_sum, run_checks, same_bits
from torch.distributed import _functional_collectives as functional
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gleaner", timeout=datetime.timedelta(seconds=120))
RANK, SIZE = dist.get_rank(), dist.get_world_size()
# Elements of float32 that go by one call, in parts and by push_pull.
SIZES = (1, 1001, 70_001, 300_001)
FACTORS = (0.3, torch.tensor([0.3]), torch.tensor(0.3, dtype=torch.float64))


def own(elements: int, rank: int = RANK) -> torch.Tensor:
    return torch.from_numpy(data_of(rank, elements).copy())


def premultiplied_sum(elements: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Returns the sum of the contributions of all ranks, each times 0.3, in the type of the elements."""
    products = [own(elements, rank).to(dtype) * torch.tensor(0.3, dtype=dtype) for rank in range(SIZE)]
    if dtype is torch.bfloat16:  # which numpy lacks
        return torch.from_numpy(rank_order_sum([each.float().numpy() for each in products])).to(dtype)
    return torch.from_numpy(rank_order_sum([each.numpy() for each in products]))


def check_premultiplied_sums() -> None:
    for elements, factor in itertools.product(SIZES, FACTORS):
        op = dist._make_nccl_premul_sum(factor)
        tensor = own(elements)
        work = dist.all_reduce(tensor, op, async_op=True)
        assert work.get_future().wait()[0].data_ptr() == tensor.data_ptr()
        assert same_bits(tensor.numpy(), premultiplied_sum(elements).numpy()), (elements, factor)
        tensor = own(elements)
        dist.reduce(tensor, 1, op)
        assert torch.equal(tensor, premultiplied_sum(elements) if RANK == 1 else own(elements))
        output, whole = torch.empty(elements), own(elements).repeat(SIZE)
        dist.reduce_scatter_tensor(output, whole, op)
        assert torch.equal(output, premultiplied_sum(elements)) and torch.equal(whole, own(elements).repeat(SIZE))
        dist.reduce_scatter(output.zero_(), [own(elements)] * SIZE, op)
        assert torch.equal(output, premultiplied_sum(elements))


def check_premultiplied_sums_of_every_type() -> None:
    for dtype, elements in itertools.product((torch.float64, torch.float16, torch.bfloat16), SIZES):
        tensor = own(elements).to(dtype)
        dist.all_reduce(tensor, dist._make_nccl_premul_sum(0.3))
        assert torch.equal(tensor, premultiplied_sum(elements, dtype)), (dtype, elements)


def check_premultiplied_sums_are_of_floats() -> None:
    op, tensor = dist._make_nccl_premul_sum(0.3), torch.ones(3, dtype=torch.int32)
    for call in (dist.all_reduce, lambda tensor, op: dist.reduce(tensor, 0, op)):
        message = raises(RuntimeError, lambda call=call: call(tensor, op))
        assert "PREMUL_SUM" in message and "float32" in message
    assert (tensor == 1).all()


def check_ranks_may_multiply_by_different_factors() -> None:
    for elements in SIZES:
        tensor = torch.ones(elements)
        dist.all_reduce(tensor, dist._make_nccl_premul_sum(RANK + 1.0))
        assert (tensor == SIZE * (SIZE + 1) / 2).all()


def check_functional_premultiplied_sums() -> None:
    op = dist._make_nccl_premul_sum(0.5)
    assert (functional.all_reduce(torch.ones(10), op, dist.group.WORLD) == 0.5 * SIZE).all()


def check_fully_sharded_gradients_are_divided() -> None:
    torch.manual_seed(1)
    whole, model = torch.nn.Linear(6, 3 * SIZE), torch.nn.Linear(6, 3 * SIZE)
    model.load_state_dict(whole.state_dict())
    fully_shard(model, mesh=dist.init_device_mesh("cpu", (SIZE,)))
    model.set_gradient_divide_factor(5.0)  # makes a PREMUL_SUM
    for rank in range(SIZE):
        (whole(torch.full((2, 6), rank + 1.0)).square().sum() / 5).backward()
    model(torch.full((2, 6), RANK + 1.0)).square().sum().backward()
    torch.testing.assert_close(model.weight.grad.full_tensor(), whole.weight.grad)


def check_gathers_into_one_tensor() -> None:
    output = torch.empty(SIZE, 5) if RANK == 1 else None
    dist.gather_single(torch.full((5,), float(RANK)), output, dst=1)
    assert output is None or torch.equal(output, torch.arange(float(SIZE)).view(SIZE, 1).expand(SIZE, 5))


def check_split_groups() -> None:
    others = list(range(2, SIZE))
    for _ in range(2):  # the second group of the same ranks has the same name
        group = dist.split_group(split_ranks=[[1, 0], others], group_desc="halves")
        members = [1, 0] if RANK < 2 else others
        assert dist.get_process_group_ranks(group) == members and group.group_desc == "halves"
        assert group.rank() == members.index(RANK) and group.size() == len(members)
        for elements in SIZES:
            tensor = torch.full((elements,), RANK + 1.0)
            dist.all_reduce(tensor, group=group)
            assert (tensor == sum(members) + len(members)).all()
        gathered = [None] * len(members)
        dist.all_gather_object(gathered, RANK, group=group)
        assert gathered == members
        dist.destroy_process_group(group)


def check_split_groups_without_a_rank() -> None:
    group = dist.split_group(split_ranks=[[0, 2]], timeout=datetime.timedelta(seconds=1))
    assert (group is dist.GroupMember.NON_GROUP_MEMBER) == (RANK not in (0, 2))
    if RANK == 0:
        assert "after 1 s" in raises(RuntimeError, lambda: dist.barrier(group))
    dist.barrier()
    if RANK == 2:
        dist.barrier(group)
    dist.barrier()


def check_split_groups_of_split_groups() -> None:
    parent = dist.split_group(split_ranks=[list(reversed(range(SIZE)))])
    group = dist.split_group(parent, [[0, 1]])
    assert (group is dist.GroupMember.NON_GROUP_MEMBER) == (RANK < SIZE - 2)
    if RANK >= SIZE - 2:
        assert dist.get_process_group_ranks(group) == [SIZE - 1, SIZE - 2]
        tensor = torch.full((3,), float(RANK))
        dist.broadcast(tensor, group=group, group_src=0)
        assert (tensor == SIZE - 1).all()


def check_groups_with_local_synchronization() -> None:
    if RANK < 2:
        for _ in range(2):
            group = dist.new_group([0, 1], use_local_synchronization=True)
            tensor = torch.ones(3)
            dist.all_reduce(tensor, group=group)
            assert (tensor == 2).all()
            dist.destroy_process_group(group)


def check_coalesced_collectives() -> None:
    for device in (None, torch.device("cpu")):
        sums = [torch.full((elements,), RANK + 1.0) for elements in SIZES]
        with dist._coalescing_manager(device=device):
            for tensor in sums:
                dist.all_reduce(tensor)
        assert all((tensor == SIZE * (SIZE + 1) / 2).all() for tensor in sums)
        rows, parts = [torch.empty(SIZE, n) for n in SIZES], [torch.empty(n) for n in SIZES]
        with dist._coalescing_manager(device=device, async_ops=True) as gathers:
            for row in rows:
                dist.all_gather_into_tensor(row, torch.full((row.shape[1],), float(RANK)))
        with dist._coalescing_manager(device=device, async_ops=True) as scatters:
            for part in parts:
                dist.reduce_scatter_tensor(part, torch.ones(SIZE * len(part)))
        scatters.wait(), gathers.wait()
        assert all((row == torch.arange(SIZE).view(SIZE, 1)).all() for row in rows)
        assert all((part == SIZE).all() for part in parts)


def check_coalesced_calls_of_several_kinds() -> None:
    given, taken, told = torch.full((5,), float(RANK)), torch.empty(5), torch.full((3,), float(RANK))
    with dist._coalescing_manager(device=torch.device("cpu"), async_ops=True) as calls:
        dist.irecv(taken, (RANK - 1) % SIZE)
        dist.isend(given, (RANK + 1) % SIZE)
        dist.broadcast(told, 1, async_op=True)
    calls.wait()
    assert (taken == (RANK - 1) % SIZE).all() and (told == 1).all()
    with dist._coalescing_manager(device=torch.device("cpu"), async_ops=True) as calls:
        pass
    calls.wait()
    group = dist.distributed_c10d._get_default_group()
    group._start_coalescing(torch.device("cpu"))
    assert group._end_coalescing(torch.device("cpu")).get_future().wait() == []


def check_functional_coalesced_collectives() -> None:
    tensors = [torch.full((n,), RANK + 1.0) for n in SIZES]
    gathered = functional.all_gather_single_coalesced(tensors, dist.group.WORLD)
    for tensor, elements in zip(gathered, SIZES):
        assert torch.equal(tensor.view(SIZE, -1), torch.arange(1.0, SIZE + 1).view(SIZE, 1).expand(SIZE, elements))
    wholes = [torch.full((SIZE * n,), RANK + 1.0) for n in SIZES]
    for tensor in functional.reduce_scatter_single_coalesced(wholes, "sum", [0] * len(SIZES), dist.group.WORLD):
        assert (tensor == SIZE * (SIZE + 1) / 2).all()
    for tensor in functional.all_reduce_coalesced(tensors, "sum", dist.group.WORLD):
        assert (tensor == SIZE * (SIZE + 1) / 2).all()


def check_batches_of_sends() -> None:
    given, taken = [torch.full((5,), float(i)) for i in range(3)], [torch.empty(5) for _ in range(3)]
    to, by = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    receives = [dist.P2POp(dist.irecv, tensor, by) for tensor in taken]
    for work in dist.batch_isend_irecv([*receives, *(dist.P2POp(dist.isend, tensor, to) for tensor in given)]):
        work.wait()
    assert all(torch.equal(*pair) for pair in zip(given, taken))


if __name__ == "__main__":
    run_checks({name: value for name, value in globals().items() if not sys.argv[1:] or name in sys.argv[1:]})
    dist.destroy_process_group()
