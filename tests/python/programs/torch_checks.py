"""Checks gleaner.torch, for any number of workers with one rank each."""

from __future__ import annotations

import time
from unittest import mock

import gleaner.torch as gln
import torch
from checking import raises, run_checks
from gleaner import FailedPreconditionError, InvalidArgumentError
from gleaner.torch.tensors import TORCH, TorchTensors
from small_training import (
    assert_same_parameters,
    equal,
    everybodys,
    inputs,
    loss_of,
    momentum,
    net,
    ordered_sum,
    reference,
    take_step,
)
from torch import nn


def check_sums_are_exact_for_every_type() -> None:
    for kind in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32):
        parts = everybodys(20_001, kind)
        assert equal(gln.push_pull(parts[gln.rank()], False, f"sum.{kind}"), ordered_sum(parts)), kind
        if kind is not torch.int32:
            assert equal(gln.push_pull(parts[gln.rank()], name=f"mean.{kind}"), ordered_sum(parts, gln.size())), kind


def check_other_tensors_are_refused() -> None:
    message = raises(TypeError, lambda: gln.push_pull(torch.ones(2, dtype=torch.int64)))
    assert "torch.int64" in message
    assert "torch.bfloat16" in message
    assert "dense" in raises(TypeError, lambda: gln.push_pull(torch.eye(3).to_sparse()))
    assert "meta" in raises(TypeError, lambda: gln.push_pull(torch.ones(2, device="meta")))
    assert "name=" in raises(TypeError, lambda: gln.push_pull(torch.ones(2), "a name"))


def check_in_place_overwrites() -> None:
    parts = everybodys(500)
    mine = parts[gln.rank()].clone()
    assert gln.push_pull_inplace(mine, name="in place") is mine
    assert equal(mine, ordered_sum(parts, gln.size()))


def check_in_place_is_a_change_to_autograd() -> None:
    weight = torch.ones(3, requires_grad=True)
    for data in (torch.ones(3), torch.ones(6)[::2], torch.ones(3, 3)[1]):
        product = (weight * data).sum()
        gln.push_pull_inplace(data, name="saved")
        assert "modified by an inplace operation" in raises(RuntimeError, product.backward)
    with torch.inference_mode():
        data = torch.ones(3)
    assert gln.push_pull_inplace(data, name="saved").tolist() == [1] * 3


def check_strided_tensors() -> None:
    parts = [part.reshape(20, 25) for part in everybodys(500)]
    total = gln.push_pull(parts[gln.rank()].t(), average=False, name="strided")
    assert equal(total, ordered_sum(parts).t())
    mine = parts[gln.rank()].clone()
    gln.push_pull_inplace(mine.t(), average=False, name="strided in place")
    assert equal(mine, ordered_sum(parts))


def check_contiguous_tensors_are_not_copied() -> None:
    tensor = torch.ones(500, requires_grad=True)
    assert TORCH.contiguous(tensor) is tensor
    copied = []
    with mock.patch.object(TorchTensors, "copy", lambda *_: copied.append(True)):
        gln.push_pull_inplace(tensor.detach(), name="not copied")
    assert not copied


def check_tensors_may_be_dropped_while_in_flight() -> None:
    handles = [gln.push_pull_async(torch.full((100_000,), float(i)), name=f"dropped.{i}") for i in range(8)]
    assert [gln.synchronize(handle)[0].item() for handle in handles] == list(range(8))


def check_poll_and_synchronize() -> None:
    gln.declare(torch.ones(10), "declared")
    handle = gln.push_pull_async(torch.ones(10), name="declared")
    while not gln.poll(handle):
        pass
    assert gln.synchronize(handle).tolist() == [1] * 10


def check_no_gradient_flows_through() -> None:
    tensor = torch.ones(4, requires_grad=True)
    assert not gln.push_pull(tensor, name="detached").requires_grad


def check_optimizer_equals_manual_averaging() -> None:
    for make in (momentum, lambda model: torch.optim.Adam(model.parameters(), lr=0.01)):
        model, expected = net(), net()
        optimizer = gln.DistributedOptimizer(make(model), model.named_parameters())
        reference(expected, make(expected), steps=5)
        for step in range(5):
            take_step(model, optimizer, step)
        assert_same_parameters(model, expected)


def check_optimizer_keeps_its_class() -> None:
    model = net()
    plain = momentum(model)
    optimizer = gln.DistributedOptimizer(plain, model.named_parameters())
    assert isinstance(optimizer, torch.optim.SGD)
    assert type(optimizer).__name__ == "SGD"
    assert optimizer.param_groups[0] is plain.param_groups[0]
    assert optimizer.state_dict()["param_groups"][0]["momentum"] == 0.9
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    loss_of(model, gln.rank(), 0).backward()
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] == 0.05


def check_gradients_leave_during_backward() -> None:
    model = net()
    optimizer = gln.DistributedOptimizer(momentum(model), model.named_parameters())
    in_flight_at_first_layer = []
    model.first.register_full_backward_hook(lambda *_: in_flight_at_first_layer.append(optimizer._gradients.in_flight))
    model.first(inputs(0, 0)).requires_grad_()
    loss_of(model, gln.rank(), 0).backward()
    assert in_flight_at_first_layer == [True]
    optimizer.step()


def check_passes_accumulate() -> None:
    model, expected = net(), net()
    optimizer = gln.DistributedOptimizer(momentum(model), model.named_parameters(), backward_passes_per_step=3)
    reference(expected, momentum(expected), steps=2, passes=3)
    for step in range(2):
        optimizer.zero_grad()
        for number in range(3):
            loss_of(model, gln.rank(), step * 3 + number).backward()
        optimizer.step()
    assert_same_parameters(model, expected)


def check_unused_parameters_count_as_zeros() -> None:
    model, expected = net(), net()
    optimizer = gln.DistributedOptimizer(momentum(model), model.named_parameters())
    reference(expected, momentum(expected), steps=3, detour_rank=0)
    for step in range(3):
        take_step(model, optimizer, step, detour=gln.rank() == 0)
    assert_same_parameters(model, expected)


def check_synchronize_allows_clipping() -> None:
    model = net()
    optimizer = gln.DistributedOptimizer(momentum(model), model.named_parameters())
    loss_of(model, gln.rank(), 0).backward()
    optimizer.synchronize()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.01)
    clipped = model.first.weight.grad.clone()
    with optimizer.skip_synchronize():
        optimizer.step()
    assert equal(model.first.weight.grad, clipped)
    norms = gln.push_pull(torch.eye(gln.size())[gln.rank()] * norm, average=False, name="norms")
    assert (norms == norms[0]).all(), "ranks clip by different norms"


def check_synchronized_gradients_are_not_averaged_again() -> None:
    model = net()
    optimizer = gln.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0), model.named_parameters())
    loss_of(model, gln.rank(), 0).backward()
    optimizer.synchronize()
    model.first.bias.grad.fill_(gln.rank())
    optimizer.step()
    assert (model.first.bias.grad == gln.rank()).all()


def check_skip_synchronize_takes_gradients_as_they_are() -> None:
    model = net()
    optimizer = gln.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0), model.named_parameters())
    before = model.first.bias.detach().clone()
    model.first.bias.grad = torch.full_like(before, float(gln.rank()))
    with optimizer.skip_synchronize():
        optimizer.step()
    assert equal(model.first.bias, before - gln.rank())


def check_closures_are_averaged() -> None:
    model, expected = net(), net()
    optimizer = gln.DistributedOptimizer(momentum(model), model.named_parameters())
    reference(expected, momentum(expected), steps=1)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = loss_of(model, gln.rank(), 0)
        loss.backward()
        return loss

    assert optimizer.step(closure).item() > 0
    assert_same_parameters(model, expected)


def check_gradients_that_share_memory() -> None:
    shapes = {"a": (2, 500), "b": (250, 2), "c": (500,)}
    parameters = {name: nn.Parameter(torch.zeros(shape)) for name, shape in shapes.items()}
    a, b, c = parameters.values()
    weights = everybodys(1000)
    expected = -ordered_sum(weights, gln.size())
    optimizer = gln.DistributedOptimizer(torch.optim.SGD([a, b, c], lr=1.0), list(parameters.items()))
    if gln.rank() == 0:  # delays each gradient until the previous gradient has become an average
        for parameter in (a, b, c):
            parameter.register_hook(lambda _: time.sleep(0.2))
    ((a.view(1000) + torch.cat([b.view(500), c])) * weights[gln.rank()]).sum().backward()
    optimizer.step()
    assert equal(a, expected.view(2, 500))
    assert equal(b, expected[:500].view(250, 2))
    assert equal(c, expected[500:])


def check_one_memory_for_two_gradients_is_an_error() -> None:
    low, high = nn.Parameter(torch.zeros(40)), nn.Parameter(torch.zeros(40))
    optimizer = gln.DistributedOptimizer(torch.optim.SGD([low, high], lr=1.0), [("low", low), ("high", high)])
    memory = torch.zeros(60)
    low.grad, high.grad = memory[:40], memory[20:]
    message = raises(InvalidArgumentError, optimizer.synchronize)
    assert "high shares memory with the gradient of low, which is in flight" in message, message
    high.grad = torch.zeros(40)
    optimizer.step()


def check_misuse_is_an_error() -> None:
    model = net()
    optimizer = gln.DistributedOptimizer(momentum(model), model.named_parameters(), wait="step")
    raises(InvalidArgumentError, lambda: gln.DistributedOptimizer(momentum(model), wait="never"))
    loss_of(model, gln.rank(), 0).backward()
    assert "in flight" in raises(FailedPreconditionError, optimizer.zero_grad)
    message = raises(FailedPreconditionError, lambda: loss_of(model, gln.rank(), 0).backward())
    assert "backward_passes_per_step" in message
    assert "was changed" in raises(FailedPreconditionError, optimizer.step), "autograd added to a gradient in flight"
    named = list(model.named_parameters())
    assert "named_parameters" in raises(
        InvalidArgumentError, lambda: gln.DistributedOptimizer(momentum(model), named[1:])
    )
    raises(
        InvalidArgumentError, lambda: gln.DistributedOptimizer(momentum(model), [(n, p) for _, p in named for n in "x"])
    )
    for passes in (0, 1.5):
        told = raises(
            InvalidArgumentError,
            lambda passes=passes: gln.DistributedOptimizer(momentum(model), backward_passes_per_step=passes),
        )
        assert f"not {passes}" in told, told
    for wrong in (model.parameters(), model.state_dict(), model, 3):
        told = raises(TypeError, lambda wrong=wrong: gln.DistributedOptimizer(momentum(model), wrong))
        assert "pass model.named_parameters()" in told, told
    for wrong in (model, torch.optim.SGD):
        assert "expected an optimizer" in raises(TypeError, lambda wrong=wrong: gln.DistributedOptimizer(wrong))
    assert "'yes'" in raises(TypeError, lambda: gln.DistributedOptimizer(momentum(model), asynchronous="yes"))
    assert "takes the model" in raises(TypeError, lambda: gln.CrossBarrier(momentum(model), model.named_parameters()))
    raises(FailedPreconditionError, lambda: optimizer.add_param_group({"params": [nn.Parameter(torch.ones(1))]}))


def check_crossing_the_barrier_gives_the_same_parameters() -> None:
    for make in (momentum, lambda model: torch.optim.Adam(model.parameters(), lr=0.01)):
        for zero_late in (True, False):
            model, expected = net(), net()
            optimizer = gln.CrossBarrier(make(model), model)
            reference(expected, make(expected), steps=4, detour_rank=0)
            for step in range(4):
                if not zero_late:
                    optimizer.zero_grad()
                loss = loss_of(model, gln.rank(), step, detour=gln.rank() == 0)
                if zero_late:
                    optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            state = model.state_dict()  # waits for the late updates
            for name, parameter in expected.named_parameters():
                assert equal(state[name], parameter), name


def check_crossing_uses_the_learning_rate_of_its_step() -> None:
    model, expected = net(), net()
    optimizer = gln.CrossBarrier(torch.optim.SGD(model.parameters(), lr=1.0), model)
    plain = torch.optim.SGD(expected.parameters(), lr=1.0)
    reference(expected, plain, steps=1)
    loss_of(model, gln.rank(), 0).backward()
    optimizer.step()
    optimizer.param_groups[0]["lr"] = 0.0
    optimizer.synchronize()
    assert_same_parameters(model, expected)


def check_crossing_updates_each_layer_before_its_forward() -> None:
    model = net()
    optimizer = gln.CrossBarrier(momentum(model), model)
    loss_of(model, gln.rank(), 0).backward()
    optimizer.step()
    late = optimizer._gradients.overdue
    assert len(late) == 6, "step() waited"
    model.first(inputs(0, 0))
    assert set(late) == {*model.second.parameters(), *model.sometimes.parameters()}
    with torch.no_grad():
        model(inputs(0, 0))
    assert not late, "a forward pass for inference updates all parameters"


def check_crossing_allows_clipping() -> None:
    model, expected = net(), net()
    crossing = gln.CrossBarrier(momentum(model), model)
    waiting = gln.DistributedOptimizer(momentum(expected), expected.named_parameters("waiting"))
    for step in range(3):
        for trained, optimizer in ((model, crossing), (expected, waiting)):
            optimizer.zero_grad()
            loss_of(trained, gln.rank(), step).backward()
            optimizer.synchronize()
            nn.utils.clip_grad_norm_(trained.parameters(), 0.01)
            with optimizer.skip_synchronize():
                optimizer.step()
    assert_same_parameters(model, expected)


def check_crossing_knows_attention() -> None:
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
    optimizer = gln.CrossBarrier(torch.optim.SGD(layer.parameters(), lr=0.1), layer)
    for _ in range(3):
        optimizer.zero_grad()
        layer(torch.ones(3, 2, 8)).square().sum().backward()
        optimizer.step()
    optimizer.synchronize()


def check_crossing_past_a_module_is_an_error() -> None:
    class Past(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, data: torch.Tensor) -> torch.Tensor:
            return nn.functional.linear(data, self.inner.weight)

    model = Past()
    optimizer = gln.CrossBarrier(torch.optim.SGD(model.parameters(), lr=0.1), model)
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    message = raises(FailedPreconditionError, lambda: model(torch.ones(2, 4)).sum().backward())
    assert "inner.weight was used before its last update" in message
    assert "was changed" in raises(
        FailedPreconditionError, optimizer.synchronize
    ), "autograd added to a gradient in flight"
    raises(InvalidArgumentError, lambda: optimizer.step(lambda: 0))
    raises(InvalidArgumentError, lambda: gln.CrossBarrier(torch.optim.LBFGS(model.parameters()), model))


def check_parameters_are_broadcast() -> None:
    root = gln.size() - 1
    model = net(seed=gln.rank())
    model.register_buffer("count", torch.tensor(gln.rank()))
    model.register_buffer("rough", torch.full((3,), float(gln.rank())).bfloat16())
    gln.broadcast_parameters(model.state_dict(), root_rank=root)
    assert_same_parameters(model, net(seed=root))
    assert model.count.item() == root
    assert model.rough.tolist() == [root] * 3
    gln.broadcast_parameters(list(model.named_parameters()), root_rank=root)


def check_empty_tensors_are_broadcast() -> None:
    model = nn.Linear(2, 2)
    for kind in (torch.float32, torch.int64, torch.bool):
        model.register_buffer(f"empty_{kind}".replace(".", "_"), torch.empty(0, 3, dtype=kind))
    gln.broadcast_parameters(model.state_dict())
    assert gln.broadcast(torch.empty(4, 0)).shape == (4, 0)


def check_what_is_no_model_is_not_broadcast() -> None:
    model = net()
    optimizer = torch.optim.Adam(model.parameters())
    message = raises(InvalidArgumentError, lambda: gln.broadcast_parameters(optimizer.state_dict()))
    assert "broadcast_optimizer_state(" in message, message
    for nameless in (model.parameters(), [torch.ones(2)], [("pair",)]):
        message = raises(TypeError, lambda nameless=nameless: gln.broadcast_parameters(nameless))
        assert "named_parameters()" in message, message


def check_different_models_are_not_broadcast() -> None:
    parameters = {"weight": torch.ones(3 if gln.rank() == 0 else 4)}
    if gln.rank() == 0:
        # broadcast_parameters() sends this before its check fails on the other ranks.
        gln.broadcast_object([("weight", (3,), "torch.float32")])
    else:
        assert "weight" in raises(InvalidArgumentError, lambda: gln.broadcast_parameters(parameters))


def check_optimizer_state_is_broadcast() -> None:
    model = net()
    plain = torch.optim.Adam(model.parameters(), lr=0.1 * (gln.rank() + 1))
    if gln.rank() == 0:  # as after a restart in which only rank 0 reads the checkpoint
        loss_of(model, 0, 0).backward()
        plain.step()
    optimizer = gln.DistributedOptimizer(plain, model.named_parameters())
    gln.broadcast_parameters(model.state_dict())
    gln.broadcast_optimizer_state(optimizer)
    assert optimizer.param_groups[0]["lr"] == 0.1
    take_step(model, optimizer, 1)
    ours = torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])
    roots = ours.clone()
    gln.broadcast_parameters({"all": roots})
    assert equal(ours, roots)


if __name__ == "__main__":
    torch.set_num_threads(1)
    gln.init()
    run_checks(globals())
    gln.shutdown()
