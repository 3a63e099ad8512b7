"""Checks backend gleaner of torch.distributed: collectives beside those of a Gloo group of the same ranks."""

from __future__ import annotations

import datetime
import gc
import itertools
import os
import sys
import tempfile
import threading
import time
import traceback
import weakref
from pathlib import Path
from typing import Any, Callable
from unittest import mock

import gleaner.torch.distributed  # noqa: F401
import numpy
import torch
import torch.distributed as dist
import torch.distributed.nn.functional
from checking import data_of, raises, rank_order_sum, run_checks, same_bits
from gleaner import process
from gleaner.groups import Group
from gleaner.torch.distributed import job
from small_training import inputs, net
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

LIMIT = datetime.timedelta(seconds=120)
dist.init_process_group("gleaner", timeout=LIMIT)
RANK, SIZE = dist.get_rank(), dist.get_world_size()
GLOO = dist.new_group(backend="gloo", timeout=LIMIT)
TYPES = (
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.int8, torch.uint8),
    *(torch.int16, torch.bool, torch.complex64),
)
OPS = ("SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR")
# Elements of float32 that go by one call, in parts and by push_pull, with a rest that the ranks can't share evenly.
SIZES = (1, 1001, 70_001, 300_001)


def small(elements: int, dtype: torch.dtype, rank: int = RANK) -> torch.Tensor:
    """Returns small whole numbers, whose sums and products are exact in every type."""
    numbers = torch.randint(0, 3, (elements,), generator=torch.Generator().manual_seed(100 * elements + rank))
    return numbers.to(dtype)


def beside_gloo(collective: Callable[[Any], list[torch.Tensor]]) -> None:
    """Asserts that a collective, a function of the group, has the same results in the Gloo group."""
    for own, other in itertools.zip_longest(collective(None), collective(GLOO)):
        assert own.dtype == other.dtype and torch.equal(own, other), (own, other)


def check_reductions_of_every_type_and_operation() -> None:
    for dtype, name, elements in itertools.product(TYPES, OPS, SIZES):
        tensor, op = small(elements, dtype), getattr(dist.ReduceOp, name)
        if name.startswith("B") and (dtype.is_floating_point or dtype.is_complex):
            raises((RuntimeError, ValueError), lambda tensor=tensor, op=op: dist.all_reduce(tensor, op))
        elif name == "SUM" or not dtype.is_complex:
            expected = [small(elements, dtype, rank) for rank in range(SIZE)]
            dist.all_reduce(tensor, op)
            assert torch.equal(tensor, combined(name, expected)), (dtype, name, elements)


def combined(op: str, tensors: list[torch.Tensor]) -> torch.Tensor:
    steps = {"SUM": torch.add, "PRODUCT": torch.mul, "MIN": torch.minimum, "MAX": torch.maximum}
    steps.update(BAND=torch.bitwise_and, BOR=torch.bitwise_or, BXOR=torch.bitwise_xor)
    total = tensors[0]
    for tensor in tensors[1:]:
        total = steps[op](total, tensor)
    return total


def check_sums_have_the_bits_of_rank_order() -> None:
    for elements in SIZES:
        parts = [data_of(rank, elements) for rank in range(SIZE)]
        for op, divisor in (("SUM", 1), ("AVG", SIZE)):
            tensor = torch.from_numpy(parts[RANK].copy())
            dist.all_reduce(tensor, getattr(dist.ReduceOp, op))
            assert same_bits(tensor.numpy(), rank_order_sum(parts, divisor)), (elements, op)
        half = [part.astype(numpy.float16) for part in parts]
        tensor = torch.from_numpy(half[RANK].copy())
        dist.all_reduce(tensor)
        assert same_bits(tensor.numpy(), rank_order_sum(half)), elements


def check_reduce_and_reduce_scatter() -> None:
    for elements in SIZES:
        parts = [small(elements, torch.float32, rank) for rank in range(SIZE)]
        tensor = parts[RANK].clone()
        dist.reduce(tensor, SIZE - 1)
        assert torch.equal(tensor, sum(parts) if RANK == SIZE - 1 else parts[RANK])
        output = torch.empty(elements)
        dist.reduce_scatter(output, [parts[RANK] * (rank + 1) for rank in range(SIZE)])
        assert torch.equal(output, sum(parts) * (RANK + 1))
        whole = torch.cat([parts[RANK] * (rank + 1) for rank in range(SIZE)])
        getattr(dist, "reduce_scatter_tensor", dist._reduce_scatter_base)(output, whole)
        assert torch.equal(output, sum(parts) * (RANK + 1))


def check_movements_beside_gloo() -> None:
    def broadcast(group: Any) -> list[torch.Tensor]:
        tensor = small(1001, dtype)
        dist.broadcast(tensor, SIZE - 1, group)
        return [tensor]

    def all_gather(group: Any) -> list[torch.Tensor]:
        outputs = [torch.empty(7, 3, dtype=dtype) for _ in range(SIZE)]
        dist.all_gather(outputs, small(21, dtype).view(7, 3), group)
        return outputs

    def gather(group: Any) -> list[torch.Tensor]:
        outputs = [torch.empty(9, dtype=dtype) for _ in range(SIZE)] if RANK == 1 else None
        dist.gather(small(9, dtype), outputs, 1, group)
        return outputs or []

    def scatter(group: Any) -> list[torch.Tensor]:
        output = torch.empty(9, dtype=dtype)
        dist.scatter(output, [small(9, dtype) for _ in range(SIZE)] if RANK == 1 else None, 1, group)
        return [output]

    for dtype in TYPES:
        for collective in (broadcast, all_gather, gather, scatter):
            if dtype not in (
                torch.int16,
                torch.bool,
                torch.complex64,
                torch.bfloat16,
            ):  # Gloo of 1.13 has none of these
                beside_gloo(collective)
            else:
                collective(None)


def check_coalesced_calls_are_one_message() -> None:
    group = dist.distributed_c10d._get_default_group()
    dtypes = (torch.float32, torch.bool, torch.float64, torch.bfloat16)
    given = [small(3 + place, dtype) for place, dtype in enumerate(dtypes)] + [small(300_001, torch.float32)]
    wanted = [[small(each.numel(), each.dtype, rank) for each in given] for rank in range(SIZE)]
    rows = [each.new_empty((SIZE, each.numel())) for each in given]
    of_ranks = [[torch.empty_like(each) for each in given] for _ in range(SIZE)]
    for gather in (
        lambda: group.allgather_into_tensor_coalesced(rows, given),
        lambda: group.allgather_coalesced(of_ranks, given),
    ):
        assert calls_of(gather) == 2, "one for small tensors, and one for the large one"
    for rank in range(SIZE):
        for place, expected in enumerate(wanted[rank]):
            assert torch.equal(rows[place][rank], expected) and torch.equal(of_ranks[rank][place], expected)
    wholes = [small(SIZE * n, torch.float32) for n in (1, 7, 300_001)] + [
        small(SIZE * 5, torch.int64) for _ in range(2)
    ]
    parts = [torch.empty(each.numel() // SIZE, dtype=each.dtype) for each in wholes]
    assert calls_of(lambda: group.reduce_scatter_tensor_coalesced(parts, wholes)) == 3
    for part, whole in zip(parts, wholes):
        total = sum(small(whole.numel(), whole.dtype, rank) for rank in range(SIZE))
        assert torch.equal(part, total.view(SIZE, -1)[RANK])
    empty = [torch.empty(0), torch.empty(0, dtype=torch.int64)]
    group.allgather_into_tensor_coalesced([each.new_empty(0) for each in empty], empty).wait()
    short = [torch.empty(3), torch.empty(4)]
    message = raises(ValueError, lambda: group.reduce_scatter_tensor_coalesced(short, short))
    assert f"expected {3 * SIZE} of torch.float32" in message, message


def calls_of(collective: Callable[[], Any]) -> int:
    """Returns how many calls of a group a collective makes, and waits for it."""
    with mock.patch.object(Group, "start", autospec=True, side_effect=Group.start) as start:
        collective().wait()
    return start.call_count


def check_all_to_all_with_splits() -> None:
    inputs = [torch.full((RANK + 2 * rank, 3), 10 * RANK + rank) for rank in range(SIZE)]
    outputs = [torch.empty(rank + 2 * RANK, 3, dtype=torch.int64) for rank in range(SIZE)]
    dist.all_to_all(outputs, inputs)
    for rank, output in enumerate(outputs):
        assert (output == 10 * rank + RANK).all()
    output = torch.empty(sum(map(len, outputs)), 3, dtype=torch.int64)
    dist.all_to_all_single(output, torch.cat(inputs), [len(each) for each in outputs], [len(each) for each in inputs])
    assert torch.equal(output, torch.cat(outputs))
    even = torch.empty(SIZE, dtype=torch.int64)
    dist.all_to_all_single(even, torch.arange(SIZE) + 10 * RANK)
    assert even.tolist() == [10 * rank + RANK for rank in range(SIZE)]


def check_views_and_empty_tensors() -> None:
    whole = torch.zeros(6, 8)
    whole[:, ::2] = RANK + 1
    dist.all_reduce(whole[:, ::2])
    assert (whole[:, ::2] == SIZE * (SIZE + 1) / 2).all() and (whole[:, 1::2] == 0).all()
    images = torch.full((2, 3, 4, 5), RANK + 1.0).to(memory_format=torch.channels_last)
    dist.broadcast(images, 1)
    assert (images == 2).all() and images.is_contiguous(memory_format=torch.channels_last)
    for tensor in (torch.empty(0), torch.empty(0, 3)):
        dist.all_reduce(tensor)
        dist.broadcast(tensor, 0)
        dist.all_gather([torch.empty_like(tensor) for _ in range(SIZE)], tensor)
    scalar = torch.tensor(RANK + 1.0)
    dist.all_reduce(scalar)
    assert scalar == SIZE * (SIZE + 1) / 2


def check_sparse_tensors_are_added() -> None:
    own = torch.sparse_coo_tensor([[RANK, SIZE]], [[1.0, 2.0], [3.0, 4.0]], (SIZE + 1, 2))
    dist.all_reduce(own)
    expected = torch.tensor([1.0, 2.0]).repeat(SIZE + 1, 1)
    expected[SIZE] = torch.tensor([3.0 * SIZE, 4.0 * SIZE])
    assert torch.equal(own.to_dense(), expected)


def check_works_end_in_any_order() -> None:
    for elements in SIZES:
        tensors = [torch.full((elements,), float(i + RANK)) for i in range(40)]
        works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
        for i in reversed(range(40)):
            if i % 3 == 0:
                works[i].get_future().wait()
            assert works[i].wait() and works[i].is_completed() and works[i].is_success()
            assert (tensors[i] == SIZE * i + SIZE * (SIZE - 1) / 2).all()


def check_works_that_nobody_waits_for_end() -> None:
    tensors = [torch.ones(elements) for elements in (10, 1001, 300_001)]
    for tensor in tensors:
        dist.all_reduce(tensor, async_op=True)
    dist.barrier()
    until = time.monotonic() + LIMIT.total_seconds()
    while not all((tensor == SIZE).all() for tensor in tensors):
        assert time.monotonic() < until
        time.sleep(0.01)


def check_waited_works_keep_no_tensor() -> None:
    kept = []
    for elements in SIZES:
        tensor = torch.ones(elements)
        kept.append(weakref.ref(tensor))
        dist.all_reduce(tensor)
        del tensor
    gc.collect()
    assert [reference() for reference in kept] == [None] * len(SIZES)


def check_more_sums_of_one_size_than_there_are_names() -> None:
    if RANK == 0:
        tensors = [torch.ones(300_001) for _ in range(40)]
        works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
        dist.send(torch.ones(1), 1)
    elif RANK == 1:
        dist.recv(torch.ones(1), 0)
    if RANK:
        tensors = [torch.ones(300_001) for _ in range(40)]
        works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for work in works:
        work.wait()
    assert all((tensor == SIZE).all() for tensor in tensors)


def check_callbacks_may_wait_for_futures() -> None:
    def again(done: Any) -> torch.Tensor:
        return dist.all_reduce(done.value()[0], async_op=True).get_future().wait()[0]

    for elements in SIZES:
        tensor = torch.ones(elements)
        future = dist.all_reduce(tensor, async_op=True).get_future().then(again)
        assert (future.wait() == SIZE * SIZE).all()


def check_functions_of_autograd_raise_errors() -> None:
    group = dist.new_group(timeout=datetime.timedelta(seconds=1))
    if RANK == 0:
        raises(RuntimeError, lambda: torch.distributed.nn.functional.all_reduce(torch.ones(2), group=group))
    dist.barrier()
    if RANK:
        dist.all_reduce(torch.ones(2), group=group)
    dist.barrier()


def check_autograd_calls_the_hooks_of_ddp() -> None:
    model = nn.parallel.DistributedDataParallel(nn.Linear(5, 5))
    torch.autograd.backward(model(torch.full((2, 5), RANK + 1.0)).sum())
    assert (model.module.weight.grad == SIZE + 1).all()


def check_futures_run_callbacks() -> None:
    tensor = torch.ones(1000)
    future = dist.all_reduce(tensor, async_op=True).get_future()
    assert (future.then(lambda done: done.value()[0] * 2).wait() == 2 * SIZE).all()


def check_callbacks_wait_for_collectives() -> None:
    def again(done: Any) -> float:
        tensor = done.value()[0]
        return dist.all_reduce(tensor, async_op=True).get_future().wait()[0].sum().item()

    for elements in SIZES:
        future = dist.all_reduce(torch.ones(elements), async_op=True).get_future().then(again)
        assert future.wait() == SIZE * SIZE * elements


def check_groups_are_apart() -> None:
    pairs = [dist.new_group([first, second]) for first, second in itertools.combinations(range(SIZE), 2)]
    for members, group in zip(itertools.combinations(range(SIZE), 2), pairs):
        if RANK in members:
            for elements in SIZES:
                tensor = torch.full((elements,), RANK + 1.0)
                dist.all_reduce(tensor, group=group)
                assert (tensor == sum(members) + 2).all()
            gathered: list[Any] = [None, None]
            dist.all_gather_object(gathered, RANK, group=group)
            assert tuple(gathered) == members


def check_large_sums_of_groups_go_by_plan() -> None:
    members = [SIZE - 2, SIZE - 1]
    group = dist.new_group(members)
    if RANK not in members:
        return
    parts = [data_of(rank, SIZES[-1]) for rank in members]
    for op, divisor in (("SUM", 1), ("AVG", 2)):
        tensor = torch.from_numpy(parts[RANK - members[0]].copy())
        dist.all_reduce(tensor, getattr(dist.ReduceOp, op), group=group)
        assert same_bits(tensor.numpy(), rank_order_sum(parts, divisor)), op
    session = process.current()
    plans = [session.tensor_plan(name) for name in session._tensors if name.startswith("all_reduce.")]
    owners = {owner for plan in plans if plan["members"] == members for owner in plan["owners"]}
    assert owners and owners <= {*members, *range(SIZE, SIZE + session.rank_info.summers)}, plans
    assert session.rank_info.summers == 0 or max(owners) >= SIZE


def check_two_threads_use_two_groups() -> None:
    groups, wrong = [dist.new_group() for _ in range(2)], []

    def use(group: Any) -> None:
        for step in range(30):
            tensor = torch.full((SIZES[step % len(SIZES)],), float(step))
            dist.all_reduce(tensor, group=group)
            if not (tensor == SIZE * step).all():
                wrong.append(step)

    threads = [threading.Thread(target=use, args=[group]) for group in (groups if RANK else reversed(groups))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def check_objects() -> None:
    gathered: list[Any] = [None] * SIZE
    dist.all_gather_object(gathered, {"rank": RANK, "text": "x" * 1000 * RANK})
    assert [each["rank"] for each in gathered] == list(range(SIZE))
    objects = [RANK, "a"] if RANK == 1 else [None, None]
    dist.broadcast_object_list(objects, 1)
    assert objects == [1, "a"]


def check_ddp_equals_gloo() -> None:
    grads = []
    for group in (None, GLOO):
        model = nn.parallel.DistributedDataParallel(net().double(), process_group=group)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(4):
            optimizer.zero_grad()
            model(inputs(RANK, step).double(), True).square().mean().backward()
            optimizer.step()
        grads.append([parameter.detach().clone() for parameter in model.parameters()])
    for own, other in zip(*grads):
        torch.testing.assert_close(own, other, rtol=1e-12, atol=1e-12)


def check_power_sgd_with_several_buckets() -> None:
    weights = []
    for has_hook in (False, True):
        torch.manual_seed(1)
        model = nn.Sequential(*(nn.Linear(300, 300) for _ in range(4)))
        model = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.5)  # gives four buckets
        if has_hook:  # each rank's gradients have rank 1, so the approximation of their mean is exact
            state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=SIZE + 1, start_powerSGD_iter=2)
            model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(5):
            optimizer.zero_grad()
            data = torch.randn(1, 300, generator=torch.Generator().manual_seed(10 * step + RANK))
            model(data).square().sum().backward()
            optimizer.step()
        weights.append([parameter.detach().clone() for parameter in model.parameters()])
    for plain, approximated in zip(*weights):
        torch.testing.assert_close(approximated, plain, rtol=1e-3, atol=1e-3)


def check_sums_of_one_tensor_follow_each_other() -> None:
    for elements in SIZES[2:]:
        whole = torch.ones(2 * elements)
        parts = whole[:elements], whole[elements // 2 : elements // 2 + elements]
        works = [dist.all_reduce(part, async_op=True) for part in (*parts, parts[0])]
        for work in works:
            work.wait()
        begin, end = elements // 2, elements
        assert (whole[:begin] == SIZE**2).all() and (whole[begin:end] == SIZE**3).all()
        assert (whole[end : begin + elements] == SIZE).all() and (whole[begin + elements :] == 1).all()


def check_wrong_arguments_leave_the_group_usable() -> None:
    uneven = torch.ones(SIZE + 1)
    assert "elements" in raises(RuntimeError, lambda: group_of_all().all_gather_single(uneven, torch.ones(1)))
    assert "rows" in raises(RuntimeError, lambda: dist.all_to_all_single(torch.ones(SIZE + 1), uneven))
    assert "factor" in raises(RuntimeError, lambda: group_of_all().allreduce([uneven], dist.ReduceOp.PREMUL_SUM))
    assert "rank" in raises((RuntimeError, ValueError), lambda: dist.send(uneven, RANK))
    tensor = torch.ones(3)
    dist.all_reduce(tensor)
    assert (tensor == SIZE).all()


def group_of_all() -> Any:
    return dist.distributed_c10d._get_default_group()


def check_forked_children_get_errors() -> None:
    dist.all_reduce(torch.ones(SIZES[2]))  # has a thread do it, which children do not have
    child = os.fork()
    if child == 0:
        try:
            for elements in SIZES:
                assert "forked" in raises(RuntimeError, lambda n=elements: dist.all_reduce(torch.ones(n)))
            dist.destroy_process_group()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert job._own is None or Path(job._own.options["token_file"]).exists()
    dist.barrier()


def check_late_ranks_are_named() -> None:
    group = dist.new_group(timeout=datetime.timedelta(seconds=1))
    if RANK == 0:
        message = raises(RuntimeError, lambda: dist.barrier(group))
        assert all(
            word in message for word in ("barrier", "Timed out", "rank 1", *(["2"] if SIZE > 2 else []))
        ), message
    dist.barrier()
    if RANK:
        dist.barrier(group)  # completes what rank 0 has begun
    dist.barrier()


def check_monitored_barrier_names_who_is_late() -> None:
    short = datetime.timedelta(seconds=1)
    call = group_of_all().monitored_barrier
    call(LIMIT)
    if RANK != 1:
        assert f"Rank {RANK or 1} " in raises(RuntimeError, lambda: call(short))
    dist.barrier()
    if RANK == 1:
        raises(RuntimeError, lambda: call(short))  # too late: the others have given up
    call(LIMIT)


def check_destroyed_groups_can_be_made_again() -> None:
    global GLOO
    dist.destroy_process_group(GLOO)
    for _ in range(2):
        folder = [tempfile.mkdtemp() if RANK == 0 else None]
        dist.broadcast_object_list(folder)
        works = [dist.all_reduce(torch.ones(elements), async_op=True) for elements in SIZES]
        dist.destroy_process_group()
        assert all(isinstance(work.is_completed(), bool) for work in works)  # no error
        meeting = f"file://{folder[0]}/meeting"
        dist.init_process_group("gleaner", init_method=meeting, rank=RANK, world_size=SIZE, timeout=LIMIT)
        tensor = torch.ones(100_000)
        dist.all_reduce(tensor)
        assert (tensor == SIZE).all()


if __name__ == "__main__":
    run_checks({name: value for name, value in globals().items() if not sys.argv[1:] or name in sys.argv[1:]})
    dist.destroy_process_group()
