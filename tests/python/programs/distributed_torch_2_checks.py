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


if __name__ == "__main__":
    run_checks({name: value for name, value in globals().items() if not sys.argv[1:] or name in sys.argv[1:]})
    dist.destroy_process_group()
