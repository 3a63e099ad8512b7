"""Checks gleaner.horovod.torch, for 3 workers with one rank each."""

from __future__ import annotations

import time
import warnings

import gleaner.horovod.torch as hvd
import torch
from checking import raises, run_checks
from gleaner import FailedPreconditionError, InvalidArgumentError
from small_training import equal, everybodys, ordered_sum
from torch import nn

hvd.init()
RANK, SIZE = hvd.rank(), hvd.size()
OTHER = (RANK + 1) % SIZE
VALUES = torch.arange(6.0).view(3, 2)


def check_numbers_of_ranks() -> None:
    assert hvd.is_initialized()
    assert (hvd.local_rank(), hvd.local_size()) == (RANK, SIZE)  # all ranks of this job have one host
    assert (hvd.cross_rank(), hvd.cross_size(), hvd.is_homogeneous()) == (0, 1, True)
    assert hvd.gloo_built() and hvd.gloo_enabled()
    assert not any([hvd.mpi_built(), hvd.mpi_enabled(), hvd.mpi_threads_supported(), hvd.nccl_built()])
    assert not any([hvd.ccl_built(), hvd.cuda_built(), hvd.ddl_built(), hvd.rocm_built()])
    hvd.stop_timeline()
    assert "gleaner trace" in raises(InvalidArgumentError, lambda: hvd.start_timeline("file"))


def check_reductions() -> None:
    ones = torch.full((4,), RANK + 1.0)
    results = {hvd.Sum: 6.0, hvd.Average: 2.0, hvd.Min: 1.0, hvd.Max: 3.0, hvd.Product: 6.0}
    for op, expected in results.items():
        assert hvd.allreduce(ones, op=op).tolist() == [expected] * 4, op
    assert hvd.allreduce(ones, False).tolist() == [6.0] * 4
    assert hvd.allreduce(ones).tolist() == [2.0] * 4
    assert equal(ones, torch.full((4,), RANK + 1.0))
    assert hvd.allreduce_(ones, op=hvd.Sum) is ones
    assert ones.tolist() == [6.0] * 4
    assert "Adasum" in raises(InvalidArgumentError, lambda: hvd.allreduce(ones, op=hvd.Adasum))
    assert "not both" in raises(ValueError, lambda: hvd.allreduce(ones, True, op=hvd.Sum))


def check_large_sums_have_the_bits_of_rank_order() -> None:
    for elements in (5_000, 20_000, 100_000):
        for kind in (torch.float32, torch.float64, torch.float16):
            parts = everybodys(elements, kind)
            assert equal(hvd.allreduce(parts[RANK], op=hvd.Sum), ordered_sum(parts)), (elements, kind)
            assert equal(hvd.allreduce(parts[RANK]), ordered_sum(parts, SIZE)), (elements, kind)


def check_many_small_sums() -> None:
    types = (torch.float32, torch.float16, torch.int64)
    for op, factor in ((hvd.Sum, 2.0), (hvd.Average, 1.0)):
        tensors = [torch.full((i + 1,), RANK + i, dtype=types[i // 10 % 3]) for i in range(60)]
        order = sorted(range(60), key=lambda i: (i * 7 + RANK * 13) % 60)  # another one on each rank
        handles = {}
        for i in order:
            in_place = hvd.allreduce_async_ if i % 2 else hvd.allreduce_async
            handles[i] = in_place(tensors[i], op=op, name=f"small.{i}", postscale_factor=factor if i % 3 else 1.0)
        for i in reversed(range(60)):
            result = hvd.synchronize(handles[i])
            expected = (3 + 3 * i) / (1 if op == hvd.Sum else SIZE) * (factor if i % 3 else 1.0)
            assert result.dtype == tensors[i].dtype and (result == expected).all(), (i, result, expected)
            assert (result is tensors[i]) == bool(i % 2) and (i % 2 or (tensors[i] == RANK + i).all())


def check_factors() -> None:
    whole = torch.tensor([3, -5])
    assert hvd.allreduce(whole, op=hvd.Sum, prescale_factor=0.5).tolist() == [3, -6]
    assert hvd.allreduce(whole, op=hvd.Sum, postscale_factor=0.5).tolist() == [4, -7]
    assert hvd.allreduce(torch.tensor([RANK, -RANK - 1])).tolist() == [1, -2]
    assert hvd.allreduce(torch.tensor([RANK, -RANK])).tolist() == [1, -1]
    one = torch.ones(2, dtype=torch.float64)
    assert hvd.allreduce(one, prescale_factor=4.0, postscale_factor=0.25).tolist() == [1.0, 1.0]


def check_groups_are_one_operation() -> None:
    mine = [VALUES * RANK, torch.full((3,), RANK), torch.tensor(float(RANK))]
    values, whole, scalar = hvd.grouped_allreduce(mine, op=hvd.Sum)
    assert equal(values, VALUES * 3)
    assert (whole.tolist(), scalar.item()) == ([3, 3, 3], 3.0)
    assert hvd.grouped_allreduce_(mine, op=hvd.Max)[0] is mine[0]
    assert equal(mine[0], VALUES * 2)
    handle = hvd.grouped_allreduce_async_([VALUES * 0], name="group")
    assert equal(hvd.synchronize(handle)[0], VALUES * 0)


def check_names_match_in_any_order() -> None:
    names = [f"tensor {place}" for place in range(6)]
    order = names[RANK:] + names[:RANK]
    handles = {name: hvd.allreduce_async(torch.full((2,), float(names.index(name))), name=name) for name in order}
    gathered = hvd.allgather_async(torch.tensor([RANK]), "gather") if RANK else None
    for name in reversed(names):
        assert hvd.synchronize(handles[name]).tolist() == [float(names.index(name))] * 2
    gathered = gathered or hvd.allgather_async(torch.tensor([RANK]), "gather")
    assert hvd.synchronize(gathered).tolist() == [0, 1, 2]


def check_handles() -> None:
    handle = hvd.allreduce_async_(torch.ones(2), name="polled")
    assert "in flight" in raises(ValueError, lambda: hvd.allreduce_async(torch.ones(2), name="polled"))
    while not hvd.poll(handle):
        time.sleep(0.001)
    again = hvd.allreduce_async(torch.ones(2), name="polled")
    assert hvd.synchronize(handle).tolist() == [1.0, 1.0]
    assert hvd.synchronize(handle) is None
    hvd.barrier()  # all ranks have started the operation
    assert "in flight" in raises(ValueError, lambda: hvd.allreduce_async(torch.ones(2), name="polled"))
    assert "unknown" in raises(ValueError, lambda: hvd.poll(handle))
    assert hvd.synchronize(again).tolist() == [1.0, 1.0]


def check_gathers_of_different_sizes() -> None:
    mine = torch.full((RANK, 2), RANK, dtype=torch.uint8)
    assert hvd.allgather(mine).tolist() == [[1, 1], [2, 2], [2, 2]]
    assert hvd.allgather(VALUES).tolist() == VALUES.tolist() * 3
    assert hvd.allgather(torch.empty(0, 4)).shape == (0, 4)
    first, second = hvd.grouped_allgather([mine, torch.tensor([RANK + 0.5])], name="two")
    assert (len(first), second.tolist()) == (3, [0.5, 1.5, 2.5])
    both = hvd.synchronize(hvd.grouped_allgather_async([mine, mine]))
    assert equal(both[0], first) and equal(both[1], first)
    assert "dimension" in raises(InvalidArgumentError, lambda: hvd.allgather(torch.tensor(1.0)))


def check_broadcasts() -> None:
    mine = VALUES + RANK
    assert equal(hvd.broadcast(mine, 2), VALUES + 2)
    assert equal(hvd.synchronize(hvd.broadcast_async(mine, 1, name="one")), VALUES + 1)
    assert equal(mine, VALUES + RANK)
    apart = torch.zeros(2, 3).t().copy_(mine)
    assert hvd.broadcast_(apart, 1) is apart
    assert equal(apart, VALUES + 1)
    assert hvd.synchronize(hvd.broadcast_async_(mine, 0)) is mine
    assert equal(mine, VALUES)
    assert "root rank 3" in raises(ValueError, lambda: hvd.broadcast(mine, 3))


def check_reducescatter() -> None:
    rows = torch.arange(5.0) * (RANK + 1)
    expected = [[0.0, 6.0], [12.0, 18.0], [24.0]][RANK]
    assert hvd.reducescatter(rows, op=hvd.Sum).tolist() == expected
    assert hvd.reducescatter(torch.ones(1)).tolist() == ([1.0] if RANK == 0 else [])
    assert hvd.synchronize(hvd.reducescatter_async(rows)).tolist() == [each / 3 for each in expected]
    twice = hvd.grouped_reducescatter([rows, VALUES], op=hvd.Sum, prescale_factor=2.0, postscale_factor=0.5)
    assert (twice[0].tolist(), twice[1].tolist()) == (expected, (VALUES[RANK : RANK + 1] * 3).tolist())
    assert len(hvd.synchronize(hvd.grouped_reducescatter_async([rows]))) == 1


def check_alltoall() -> None:
    assert hvd.alltoall(torch.arange(3) + 10 * RANK).tolist() == [RANK, 10 + RANK, 20 + RANK]
    splits = torch.tensor([0, 1, 2], dtype=torch.int32)
    received, rows = hvd.alltoall(VALUES + RANK, splits)
    assert (rows.tolist(), rows.dtype) == ([RANK] * 3, torch.int32)
    assert equal(received, torch.cat([VALUES[RANK * (RANK - 1) // 2 :][:RANK] + rank for rank in range(SIZE)]))
    received, rows = hvd.synchronize(hvd.alltoall_async(torch.arange(3)))
    assert rows.tolist() == [1, 1, 1]
    assert "2 rows" in raises(ValueError, lambda: hvd.alltoall(torch.ones(2)))
    assert "int32" in raises(ValueError, lambda: hvd.alltoall(torch.ones(3), torch.ones(3)))


def check_differences_are_errors_that_the_session_survives() -> None:
    shape = raises(hvd.HorovodInternalError, lambda: hvd.allreduce(torch.ones(RANK + 1)))
    assert "rank 0 of the process set has (1,), rank 1 has (2,)" in shape
    kind = torch.float32 if RANK else torch.float64
    assert "float64" in raises(RuntimeError, lambda: hvd.allreduce(torch.ones(2, dtype=kind), name="kind"))
    assert "root rank" in raises(RuntimeError, lambda: hvd.broadcast(torch.ones(2), OTHER))
    assert "shapes" in raises(RuntimeError, lambda: hvd.allgather(torch.ones(2, RANK + 1)))
    assert "dimension" in raises(RuntimeError, lambda: hvd.allgather(torch.ones([2] * (RANK + 1))))
    op = hvd.Min if RANK else hvd.Max
    assert "reduction" in raises(RuntimeError, lambda: hvd.allreduce(torch.ones(2), op=op))
    assert "ranks" in raises(RuntimeError, lambda: hvd.add_process_set([RANK]))
    assert hvd.allreduce(torch.ones(2), name="kind").tolist() == [1.0, 1.0]


def check_gradients_flow() -> None:
    mine = torch.ones(3, requires_grad=True)
    calls = {
        "allreduce": (lambda: hvd.allreduce(mine, op=hvd.Sum), [3.0] * 3),
        "grouped": (lambda: hvd.grouped_allreduce([mine, mine])[0], [1.0] * 3),
        "allgather": (lambda: hvd.allgather(mine), [1.0] * 3),
        "broadcast": (lambda: hvd.broadcast(mine, 1), [1.0 if RANK == 1 else 0.0] * 3),
        "alltoall": (lambda: hvd.alltoall(mine), [1.0] * 3),
        "reducescatter": (lambda: hvd.reducescatter(mine, op=hvd.Sum), [3.0] * 3),
    }
    for name, (call, expected) in calls.items():
        mine.grad = None
        call().sum().backward()
        assert mine.grad.tolist() == expected, name


def check_join() -> None:
    for step in range(RANK):
        present = SIZE - step - 1
        assert hvd.allreduce(torch.ones(2), name="uneven").tolist() == torch.full((2,), present / SIZE).tolist()
        assert hvd.allreduce(torch.ones(50_000, dtype=torch.int32), op=hvd.Sum).tolist()[0] == present
    if RANK == 2:
        assert "joined" in raises(RuntimeError, lambda: hvd.allgather(torch.ones(2)))
        assert "joined" in raises(RuntimeError, lambda: hvd.allreduce(torch.ones(2), op=hvd.Max))
    assert hvd.join() == 2
    kept = hvd.allreduce_async(torch.ones(1))
    hvd.join()
    assert hvd.allreduce(torch.ones(2)).tolist() == [1.0, 1.0]
    assert hvd.synchronize(kept).tolist() == [1.0]


def check_process_sets() -> None:
    outer, inner = hvd.add_process_set([2, 0]), hvd.add_process_set(hvd.ProcessSet([1]))
    assert (outer.size(), outer.rank(), outer.included()) == (2, {0: 0, 2: 1}.get(RANK), RANK != 1)
    mine = outer if RANK != 1 else inner
    total = 2.0 if RANK != 1 else 1.0
    assert hvd.allreduce(torch.tensor([float(RANK)]), op=hvd.Sum, process_set=mine).tolist() == [total]
    assert hvd.broadcast(torch.tensor([RANK]), 2 if RANK != 1 else 1, process_set=mine).tolist() == [
        2 if RANK != 1 else 1
    ]
    assert hvd.allgather_object(RANK, process_set=mine) == mine.ranks
    assert "it is no member" in raises(ValueError, lambda: hvd.barrier(inner if RANK != 1 else outer))
    assert "has these ranks" in raises(ValueError, lambda: hvd.add_process_set([0, 2]))
    assert "0 to 2" in raises(ValueError, lambda: hvd.add_process_set([3]))
    hvd.barrier(mine)
    assert hvd.remove_process_set(outer) and hvd.remove_process_set(inner)
    assert not hvd.remove_process_set(outer) and not hvd.remove_process_set(hvd.global_process_set)
    assert outer.size() is None and outer.included() is None
    assert "has not made it" in raises(ValueError, lambda: hvd.allreduce(VALUES, process_set=outer))
    again = hvd.add_process_set([0, 2])
    if again.included():
        assert hvd.allreduce(torch.ones(1), process_set=again).tolist() == [1.0]
    hvd.remove_process_set(again)


def check_objects_and_parameters() -> None:
    assert hvd.broadcast_object({"rank": RANK}, 1, name="object") == {"rank": 1}
    assert hvd.allgather_object("x" * 3000 * RANK) == ["", "x" * 3000, "x" * 6000]
    torch.manual_seed(RANK)
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    hvd.broadcast_parameters(model.state_dict(), root_rank=1)
    hvd.broadcast_parameters(list(model.named_parameters()), root_rank=1)
    hvd.broadcast_parameters(list(model.parameters()), root_rank=1)
    for each in model.state_dict().values():
        assert equal(each, hvd.broadcast(each, 1))
    assert "dict" in raises(ValueError, lambda: hvd.broadcast_parameters(3, 0))
    optimizer = torch.optim.SGD(model.parameters(), lr=RANK + 1.0, momentum=0.5)
    if RANK == 2:
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
    hvd.broadcast_optimizer_state(optimizer, root_rank=2)
    assert optimizer.param_groups[0]["lr"] == 3.0
    assert len(optimizer.state_dict()["state"]) == 4
    hvd.barrier()


def check_sparse() -> None:
    mine = torch.sparse_coo_tensor([[RANK, 2]], [1.0, RANK], (4,))
    assert hvd.sparse_allreduce_async(mine, "sparse", hvd.Sum)().to_dense().tolist() == [1.0, 1.0, 4.0, 0.0]
    assert hvd.sparse_allreduce_async(mine * 3, "sparse", hvd.Average)().to_dense().tolist() == [1.0, 1.0, 4.0, 0.0]
    for as_dense in (False, True):
        model = nn.Embedding(5, 2, sparse=True)
        hvd.broadcast_parameters(model.state_dict(), 0)
        before = model.weight.detach().clone()
        plain = torch.optim.SGD(model.parameters(), lr=3.0)
        optimizer = hvd.DistributedOptimizer(plain, model.named_parameters(), sparse_as_dense=as_dense)
        model(torch.tensor([RANK, 4])).sum().backward()
        optimizer.step()
        moved = (before - model.weight.detach()).round()
        assert moved.tolist() == [[1.0, 1.0]] * 3 + [[0.0, 0.0], [3.0, 3.0]], as_dense


def _trained(**options: object) -> list[torch.Tensor]:
    """Trains a model of two layers, one of which is large, on all ranks. Returns its parameters."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(200, 150), nn.Linear(150, 4)).double()
    if "groups" in options and not isinstance(options["groups"], int):
        options["groups"] = [[model[0].weight, model[1].bias]]
    plain = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    optimizer = hvd.DistributedOptimizer(plain, named_parameters=model.named_parameters(), **options)
    for step in range(3):
        optimizer.zero_grad()
        for part in range(options.get("backward_passes_per_step", 1)):
            _loss(model, RANK, step, part).backward()
        optimizer.step()
    return [each.detach() for each in model.parameters()]


def _loss(model: nn.Module, rank: int, step: int, part: int = 0) -> torch.Tensor:
    seed = torch.Generator().manual_seed(100 * rank + 10 * step + part)
    return model(torch.randn(8, 200, generator=seed, dtype=torch.float64)).square().mean()


def _reference(passes: int = 1) -> list[torch.Tensor]:
    """Trains the same in one process, with the gradients added in the order of ranks."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(200, 150), nn.Linear(150, 4)).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(3):
        parts = []
        for rank in range(SIZE):
            optimizer.zero_grad()
            for part in range(passes):
                _loss(model, rank, step, part).backward()
            parts.append([each.grad.clone() for each in model.parameters()])
        for place, each in enumerate(model.parameters()):
            each.grad = ordered_sum([part[place] for part in parts], SIZE)
        optimizer.step()
    return [each.detach() for each in model.parameters()]


def check_optimizer_has_the_bits_of_one_process() -> None:
    for options in ({}, {"groups": 2}, {"groups": []}, {"gradient_predivide_factor": 4.0}):
        assert all(map(equal, _trained(**options), _reference())), options
    assert all(map(equal, _trained(backward_passes_per_step=2), _reference(2)))


def check_optimizer_compresses() -> None:
    for one, other in zip(_trained(compression=hvd.Compression.fp16), _reference()):
        assert torch.allclose(one, other, atol=1e-3) and not equal(one, other)


def check_optimizer_of_a_process_set() -> None:
    pair = hvd.add_process_set([0, 1])
    weight = nn.Parameter(torch.zeros(1))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0), process_set=pair)
    (weight * RANK).sum().backward()
    optimizer.step()
    assert weight.item() == (-0.5 if RANK < 2 else -2.0)
    hvd.remove_process_set(pair)


def check_optimizer_synchronizes() -> None:
    weight, unused = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.ones(1))
    named = [("weight", weight), ("unused", unused)]
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight, unused], lr=1.0), named, op=hvd.Sum)
    (weight * (unused if RANK == 0 else 1.0)).sum().backward()
    assert "in flight" in raises(FailedPreconditionError, optimizer.zero_grad)
    optimizer.synchronize()
    assert (weight.grad.item(), unused.grad.item()) == (3.0, 0.0)
    with optimizer.skip_synchronize():
        optimizer.step()
    assert weight.item() == -3.0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        optimizer.synchronize()
        optimizer.step()
    assert any("skip_synchronize" in str(each.message) for each in caught)
    (weight + 0).sum().backward()
    assert "backward_passes_per_step" in raises(RuntimeError, lambda: (weight + 0).sum().backward())
    optimizer.step()
    optimizer.set_backward_passes_per_step(2)
    for _ in range(2):
        (weight + 0).sum().backward()
    optimizer.step()


def check_optimizer_drops_reductions_when_it_loads() -> None:
    weight = nn.Parameter(torch.zeros(1))
    optimizer = hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=1.0))
    for _ in range(2):
        (weight + 0).sum().backward()
        optimizer.load_state_dict(optimizer.state_dict())
        hvd.barrier()
        optimizer.zero_grad()
    (weight + 0).sum().backward()
    optimizer.step()
    assert weight.item() == -1.0


def check_optimizer_refuses_bad_arguments() -> None:
    weight = nn.Parameter(torch.zeros(1))
    plain = torch.optim.SGD([weight], lr=1.0)
    raises(ValueError, lambda: hvd.DistributedOptimizer(plain, op=hvd.Adasum))
    raises(ValueError, lambda: hvd.DistributedOptimizer(plain, op=hvd.Sum, gradient_predivide_factor=2.0))
    raises(ValueError, lambda: hvd.DistributedOptimizer(plain, backward_passes_per_step=0))
    raises(ValueError, lambda: hvd.DistributedOptimizer(plain, [("a", weight), ("a", weight)]))
    raises(ValueError, lambda: hvd.DistributedOptimizer(plain, []))
    raises(ValueError, lambda: hvd.DistributedOptimizer(plain, groups=[[weight], [weight]]))
    raises(TypeError, lambda: hvd.DistributedOptimizer([weight]))


def check_batch_norm_of_all_ranks() -> None:
    torch.manual_seed(1)
    batch = torch.randn(4 * SIZE, 3, 5)
    mine = batch[4 * RANK :][:4].clone().requires_grad_()
    whole = batch.clone().requires_grad_()
    ours, alone = hvd.SyncBatchNorm(3), nn.BatchNorm1d(3)
    result, expected = ours(mine), alone(whole)
    assert torch.allclose(result, expected[4 * RANK :][:4], atol=1e-5)
    assert torch.allclose(ours.running_var, alone.running_var)
    result.square().sum().backward()
    expected.square().sum().backward()
    assert torch.allclose(mine.grad, whole.grad[4 * RANK :][:4], atol=1e-5)
    assert torch.allclose(ours.eval()(mine), alone.eval()(whole)[4 * RANK :][:4], atol=1e-5)


def check_layer_opens_again() -> None:
    hvd.shutdown()
    assert not hvd.is_initialized()
    assert "init()" in raises(FailedPreconditionError, hvd.rank)
    pair, again = hvd.ProcessSet([0, 1]), hvd.ProcessSet(reversed(range(2)))
    hvd.init(process_sets=[pair, again])
    assert hvd.allreduce(torch.ones(2)).tolist() == [1.0, 1.0]
    assert (pair.included(), again.included()) == (RANK < 2, None)
    assert "comm" in raises(InvalidArgumentError, lambda: hvd.init([0, 1]))


if __name__ == "__main__":
    run_checks(globals())
