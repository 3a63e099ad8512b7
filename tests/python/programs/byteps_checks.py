"""Checks gleaner.byteps.torch, each name at least once, for any number of workers with one rank each."""

from __future__ import annotations

import copy
import functools
import warnings
from typing import Any
from unittest import mock

import gleaner.byteps.torch as bps
import gleaner.byteps.torch.cross_barrier as crossing
import torch
from checking import raises, run_checks
from gleaner import FailedPreconditionError, InvalidArgumentError
from gleaner.byteps.torch.parallel import DistributedDataParallel
from gleaner.torch import join, operations
from small_training import (
    Net,
    assert_same_parameters,
    equal,
    everybodys,
    inputs,
    loss_of,
    momentum,
    net,
    ordered_sum,
    reference,
    same_on_all_ranks,
    take_step,
)
from torch import nn


def check_ranks_are_numbered() -> None:
    assert 0 <= bps.rank() < bps.size()
    assert (bps.local_rank(), bps.local_size()) == (0, 1)
    bps.init(lazy=False)


def check_push_pull_has_the_order_of_arguments() -> None:
    parts = everybodys(300)
    mine = parts[bps.rank()]
    assert equal(bps.push_pull(mine, True, "mean", 0, 5), ordered_sum(parts, bps.size()))
    assert equal(bps.push_pull(mine, False, "sum", 3, 0, bps.Compression.none), ordered_sum(parts))
    assert bps.push_pull(torch.ones(3)).tolist() == [1] * 3, "without a name"


def check_push_pull_compresses() -> None:
    parts = [each.half() for each in everybodys(300)]
    mean = bps.push_pull(parts[bps.rank()].float(), name="small", compression=bps.Compression.fp16)
    assert equal(mean, ordered_sum(parts, bps.size()).float())
    assert "Compression.fp16" in raises(TypeError, lambda: bps.push_pull(torch.ones(1), name="x", compression="fp16"))


def check_gradients_flow_through_push_pull() -> None:
    for average, factor in ((True, 1), (False, bps.size())):
        for compression in (bps.Compression.none, bps.Compression.fp16):
            tensor = torch.ones(4, requires_grad=True)
            result = bps.push_pull(tensor, average, f"flows.{average}.{compression.__name__}", compression=compression)
            (result * (bps.rank() + 1)).sum().backward()
            ranks = range(1, bps.size() + 1)
            assert tensor.grad.tolist() == [factor * sum(ranks) / bps.size()] * 4


def check_in_place_and_asynchronous_requests() -> None:
    parts = everybodys(300)
    expected = ordered_sum(parts, bps.size())
    mine = parts[bps.rank()].clone()
    assert bps.push_pull_inplace(mine, True, "in place", 0, 1) is mine
    assert equal(mine, expected)
    handle = bps.push_pull_async(parts[bps.rank()], True, "later", 0, 1)
    while not bps.poll(handle):
        pass
    assert equal(bps.synchronize(handle), expected)
    mine = parts[bps.rank()].clone()
    assert bps.synchronize(bps.push_pull_async_inplace(mine, False, "later in place", 0, 1)) is mine
    assert equal(mine, ordered_sum(parts))


def check_higher_priorities_go_first() -> None:
    for name in ("push_pull", "push_pull_inplace", "push_pull_async", "push_pull_async_inplace"):
        with mock.patch.object(operations, name, lambda *arguments: arguments[3]):
            assert getattr(bps, name)(torch.ones(1), True, "x", 0, 7) == -7


def check_declare_declares_nothing() -> None:
    assert bps.declare("declared") == 0
    assert bps.push_pull(torch.ones(2), name="declared").tolist() == [1] * 2


def check_broadcasts() -> None:
    root = bps.size() - 1
    model = net(seed=bps.rank())
    model.register_buffer("count", torch.tensor(bps.rank()))
    bps.broadcast_parameters(model.state_dict(), root_rank=root, prefix="P.")
    assert_same_parameters(model, net(seed=root))
    assert model.count.item() == root
    for make in (lambda each: list(each.named_parameters()), lambda each: list(each.parameters())):
        model = net(seed=bps.rank())
        bps.broadcast_parameters(make(model), 0)
        assert_same_parameters(model, net(seed=0))
    in_any_order = [("a", torch.full((2,), float(bps.rank()))), ("b", torch.full((1,), -float(bps.rank())))]
    tensors = dict(in_any_order if bps.rank() else in_any_order[::-1])
    bps.broadcast_parameters(tensors, root)
    assert (tensors["a"].tolist(), tensors["b"].tolist()) == ([root, root], [-root])
    assert bps.broadcast_object({"epoch": bps.rank()}, root, name="epoch") == {"epoch": root}
    plain = torch.optim.Adam(model.parameters(), lr=0.1 * (bps.rank() + 1))
    bps.broadcast_optimizer_state(plain, 0, prefix="P.")
    assert plain.param_groups[0]["lr"] == 0.1


def check_other_compressors_are_refused() -> None:
    model = net()
    for name in ("onebit", "topk", "randomk", "dithering"):
        assert "Compression.fp16" in raises(AttributeError, lambda name=name: getattr(bps.Compression, name))
    wrong = {"compressor": "onebit", "ef": "vanilla"}
    told = raises(TypeError, lambda: optimizer_of(model, compression_params=wrong))
    assert "onebit" in told and "Compression.fp16" in told, told


def optimizer_of(model: nn.Module, *arguments: Any, **more: Any) -> torch.optim.Optimizer:
    return bps.DistributedOptimizer(momentum(model), model.named_parameters(), *arguments, **more)


def check_optimizer_has_the_order_of_arguments() -> None:
    model, expected = net(), net()
    optimizer = optimizer_of(model, bps.Compression.fp16, 2)
    reference(expected, momentum(expected), 2, 2, sent_as=torch.float16)
    for step in range(2):
        optimizer.zero_grad()
        for number in range(2):
            loss_of(model, bps.rank(), step * 2 + number).backward()
        optimizer.step()
    assert_same_parameters(model, expected)
    assert isinstance(optimizer, torch.optim.SGD)


def check_clipping_and_a_new_number_of_passes() -> None:
    model, expected = net(), net()
    optimizer, waiting = optimizer_of(model), optimizer_of(expected)
    optimizer.set_backward_passes_per_step(2)
    for step in range(2):
        for trained, own, losses in ((model, optimizer, (0.5, 0.5)), (expected, waiting, (1.0,))):
            own.zero_grad()
            for weight in losses:
                (loss_of(trained, bps.rank(), step) * weight).backward()
            own.synchronize()
            nn.utils.clip_grad_norm_(trained.parameters(), 0.01)
            with own.skip_synchronize():
                own.step()
    for ours, wanted in zip(model.parameters(), expected.parameters()):
        assert torch.allclose(ours, wanted)


def check_optimizer_needs_no_names() -> None:
    for names in (None, []):
        model, expected = net(), net()
        reference(expected, momentum(expected), steps=1)
        take_step(model, bps.DistributedOptimizer(momentum(model), names), 0)
        assert_same_parameters(model, expected)
    twice = [("same", each) for each in model.parameters()]
    assert "twice" in raises(ValueError, lambda: bps.DistributedOptimizer(momentum(model), twice))


def check_asynchronous_training_by_the_environment() -> None:
    for value, is_asynchronous in (("1", True), ("0", False), ("", False)):
        with mock.patch.dict("os.environ", BYTEPS_ENABLE_ASYNC=value):
            optimizer = optimizer_of(net())
        assert hasattr(optimizer, "_deltas") == is_asynchronous


def check_crossing_trains_as_the_optimizer_does() -> None:
    for compression, sent_as in ((bps.Compression.none, torch.float32), (bps.Compression.fp16, torch.float16)):
        model, expected = net(), net()
        names = model.named_parameters()
        optimizer = crossing.CrossBarrier(model, momentum(model), names, compression, 1, 3)
        crossing.broadcast_parameters(model.state_dict(), root_rank=0)
        crossing.broadcast_optimizer_state(optimizer, root_rank=0)
        reference(expected, momentum(expected), steps=3, sent_as=sent_as)
        for step in range(3):  # without zero_grad()
            loss_of(model, crossing.rank(), step).backward()
            optimizer.step()
        assert_same_parameters(model, expected)
    for name in crossing.__all__:
        assert hasattr(crossing, name)


def parallel(**more: Any) -> tuple[DistributedDataParallel, torch.optim.Optimizer]:
    model = DistributedDataParallel(net(seed=1 if bps.rank() == 0 else 2), **more)
    return model, momentum(model)


def check_a_parallel_module_averages() -> None:
    for compression, sent_as in ((bps.Compression.none, torch.float32), (bps.Compression.fp16, torch.float16)):
        (model, optimizer), expected = parallel(device_ids=[bps.local_rank()], compression=compression), net()
        reference(expected, momentum(expected), 4, detour_rank=0, sent_as=sent_as)
        for step in range(4):
            take_step(model, optimizer, step, detour=bps.rank() == 0)
        assert_same_parameters(model.module, expected)
        assert next(iter(model.state_dict())) == "module.first.weight"


def check_a_parallel_module_accumulates_without_averages() -> None:
    (model, optimizer), expected = parallel(), net()
    reference(expected, momentum(expected), steps=2, passes=3)
    for step in range(2):
        optimizer.zero_grad()
        with model.no_sync(), model.no_sync():
            loss_of(model, bps.rank(), step * 3).backward()
        with model.no_sync():
            loss_of(model, bps.rank(), step * 3 + 1).backward()
        assert not same_on_all_ranks(Gradients(model.module)) or bps.size() == 1
        loss_of(model, bps.rank(), step * 3 + 2).backward()
        optimizer.step()
    assert_same_parameters(model.module, expected)


class Gradients(nn.Module):
    """The gradients of a model as parameters, for same_on_all_ranks()."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.all = nn.ParameterList([nn.Parameter(p.grad.clone()) for p in model.parameters() if p.grad is not None])


def check_a_parallel_module_synchronizes_left_over_gradients() -> None:
    """In its second step rank 0 makes no backward pass, and the other ranks' averages wait for its synchronize()."""
    (model, optimizer), expected = parallel(), net()
    plain = momentum(expected)
    for step in range(2):
        plain.zero_grad(set_to_none=True)
        for rank in range(step, bps.size()):
            (loss_of(expected, rank, step) / bps.size()).backward()
        plain.step()
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model, bps.rank(), step)
        if bps.rank() >= step:
            loss.backward()
        averages = [each.grad for each in model.parameters()]
        model.synchronize()
        if bps.rank() >= step:
            assert all(each.grad is average for each, average in zip(model.parameters(), averages))
        optimizer.step()
    for ours, wanted in zip(model.module.parameters(), expected.parameters()):
        assert torch.allclose(ours, wanted, rtol=1e-5)
    assert same_on_all_ranks(model)


def check_a_parallel_module_copies_buffers() -> None:
    for broadcast_buffers in (True, False):
        inner = nn.BatchNorm1d(20)
        model = DistributedDataParallel(inner, broadcast_buffers=broadcast_buffers)
        inner.running_mean.fill_(float(bps.rank()))
        with torch.no_grad():
            model.eval()(inputs(0, 0))
        assert inner.running_mean.unique().tolist() == [0 if broadcast_buffers else bps.rank()]


def check_uses_of_a_parallel_module_that_fail() -> None:
    for devices in ([], [0, 1]):
        told = raises(InvalidArgumentError, lambda devices=devices: DistributedDataParallel(net(), devices))
        assert "one device" in told
    raises(TypeError, lambda: DistributedDataParallel(net(), compression="fp16"))
    model, _ = parallel()
    assert "`module`" in raises(TypeError, functools.partial(copy.deepcopy, model))
    assert "DistributedDataParallel" in raises(FailedPreconditionError, join)
    del model


def check_no_warning_of_different_parameters() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model, optimizer = parallel()
        take_step(model, optimizer, 0)
    assert isinstance(model.module, Net)


def check_shutdown() -> None:
    bps.shutdown()
    assert "no session" in raises(FailedPreconditionError, bps.rank)


if __name__ == "__main__":
    torch.set_num_threads(1)
    bps.init()
    run_checks(globals())
