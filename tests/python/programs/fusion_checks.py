"""Checks gradients that are sent in packs (fusion_bytes), for any number of workers with one rank each."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import gleaner.torch as gln
import torch
from checking import raises, run_checks
from gleaner import FailedPreconditionError, InvalidArgumentError
from gleaner.session import Session
from small_training import (
    assert_same_parameters,
    distributed,
    equal,
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

# Net has gradients of 40, 400, 40, 1200, 120 and 2400 bytes, in this order.
THRESHOLDS = (1, 100, 500, 2000, 10_000, math.inf)


def crossing(model: nn.Module, **more: Any) -> torch.optim.Optimizer:
    return gln.CrossBarrier(momentum(model), model, **more)


@contextmanager
def sent() -> Iterator[list[str]]:
    """Records the names of the optimizers' tensors that this rank sends, without the name of the optimizer."""
    names: list[str] = []
    push_pull = Session.push_pull_async

    def note(session: Session, tensor: int, source: int, output: int, op: Any, name: str, *rest: Any) -> int:
        if not name.startswith("broadcast/"):
            names.append(re.sub(r"^optimizer\.\d+\.|(?<=\D)\.\d+$", "", name))
        return push_pull(session, tensor, source, output, op, name, *rest)

    with mock.patch.object(Session, "push_pull_async", note):
        yield names


@contextmanager
def copies() -> Iterator[list[torch.Tensor]]:
    """Records the tensors into which PyTorch copies others."""
    targets: list[torch.Tensor] = []
    copy = torch.Tensor.copy_

    def note(target: torch.Tensor, *rest: Any) -> torch.Tensor:
        targets.append(target)
        return copy(target, *rest)

    with mock.patch.object(torch.Tensor, "copy_", note):
        yield targets


def check_packs_give_the_bits_of_single_gradients() -> None:
    for fusion_bytes in THRESHOLDS:
        for wrap, more in (
            (distributed, {}),
            (distributed, {"wait": "step"}),
            (distributed, {"prioritize": False}),
            (distributed, {"backward_passes_per_step": 2}),
            (crossing, {}),
            (crossing, {"backward_passes_per_step": 2}),
        ):
            for set_to_none in (True, False):
                model, expected = net(), net()
                optimizer = wrap(model, fusion_bytes=fusion_bytes, **more)
                passes = more.get("backward_passes_per_step", 1)
                reference(expected, momentum(expected), 3, passes, detour_rank=0)
                for step in range(3):
                    optimizer.zero_grad(set_to_none=set_to_none)
                    for number in range(passes):
                        loss_of(model, gln.rank(), step * passes + number, detour=gln.rank() == 0).backward()
                    optimizer.step()
                optimizer.synchronize()
                assert_same_parameters(model, expected)


def check_small_gradients_are_sent_together() -> None:
    for fusion_bytes, wanted in (
        (1, ["sometimes.bias", "sometimes.weight", "second.bias", "second.weight", "first.bias", "first.weight"]),
        (100, ["pack.0.sometimes.bias-second.bias", "sometimes.weight", "second.weight", "first.bias", "first.weight"]),
        (450, ["pack.0.sometimes.bias-second.bias", "second.weight", "first.bias", "first.weight"]),
        (1300, ["pack.0.sometimes.bias-second.weight", "first.bias", "first.weight"]),
        (math.inf, ["pack.0.sometimes.bias-first.weight"]),
    ):
        model = net()
        optimizer = distributed(model, fusion_bytes=fusion_bytes)
        with sent() as names:
            take_step(model, optimizer, 0, detour=True)
        assert sorted(name.removeprefix("gradient.") for name in names) == sorted([*wanted, "roll"]), names


def check_gradients_that_stay_in_their_places_are_not_copied() -> None:
    model = net()
    optimizer = distributed(model, fusion_bytes=math.inf, backward_passes_per_step=2)
    loss_of(model, gln.rank(), 1, detour=True).backward()
    take_step(model, optimizer, 0, detour=True)
    places = [each.grad.data_ptr() for each in model.parameters()]
    sizes = [each.numel() * 4 for each in model.parameters()]
    for to_none, copied in ((False, 0), (True, 6)):
        with copies() as targets:
            optimizer.zero_grad(set_to_none=to_none)
            for number in range(2):
                loss_of(model, gln.rank(), number, detour=True).backward()
            optimizer.step()
        assert len(targets) == copied, targets
        assert [each.grad.data_ptr() for each in model.parameters()] == places
    after = [place + size for place, size in zip(places, sizes)]
    assert places[:-1] == after[1:], "the gradients lie one after another, the last parameter's first"


def check_only_a_rank_without_a_gradient_lacks_it() -> None:
    """The roll call tells which gradients no rank has. Their parameter.grad stays, also beside others of a pack."""
    for wrap in (distributed, crossing):
        model = net()
        optimizer = wrap(model, fusion_bytes=math.inf)
        take_step(model, optimizer, 0)
        optimizer.synchronize()
        assert model.sometimes.weight.grad is None
    model = net()
    optimizer = distributed(model, fusion_bytes=math.inf)
    take_step(model, optimizer, 0, detour=True)
    kept = model.sometimes.weight.grad.clone()
    model.first.zero_grad()
    model.second.zero_grad()
    loss_of(model, gln.rank(), 1).backward()  # gradients of `sometimes` are those of the step before
    assert equal(model.sometimes.weight.grad, kept)
    loss_of(model, gln.rank(), 2, detour=gln.rank() == 0).backward()  # other ranks contribute what they have
    mine = [kept.clone() for _ in range(gln.size())]
    alone = net()
    alone.load_state_dict(model.state_dict())
    loss_of(alone, 0, 2, detour=True).backward()
    mine[0] += alone.sometimes.weight.grad
    assert equal(model.sometimes.weight.grad, ordered_sum(mine, gln.size()))


class Recorder:
    """Compresses nothing, and keeps copies of the tensors that are sent."""

    def __init__(self) -> None:
        self.sent: list[torch.Tensor] = []

    def compress(self, tensor: torch.Tensor) -> tuple[torch.Tensor, None]:
        self.sent.append(tensor.clone())
        return tensor, None

    def decompress(self, tensor: torch.Tensor, context: None) -> torch.Tensor:
        return tensor


def check_gradients_that_no_rank_has_are_sent_as_zeros() -> None:
    model, recorder = net(), Recorder()
    optimizer = distributed(model, fusion_bytes=math.inf, compression=recorder)
    for step, detour in enumerate((True, False)):
        optimizer.zero_grad(set_to_none=True)
        loss_of(model, gln.rank(), step, detour).backward()
        assert recorder.sent[-1][:110].any() == detour, "the first 110 elements are the gradients of `sometimes`"


def check_a_pack_without_gradients_on_all_ranks_is_not_sent() -> None:
    model = net()
    optimizer = distributed(model, fusion_bytes=410)  # a pack of the gradients of `sometimes`
    with sent() as names:
        take_step(model, optimizer, 0)
    assert not any("sometimes" in name for name in names), names
    assert model.sometimes.weight.grad is None and model.sometimes.bias.grad is None


def check_parameters_are_frozen_and_unfrozen() -> None:
    model, expected = net(), net()
    expected.second.requires_grad_(False)
    optimizer, plain = distributed(model, fusion_bytes=math.inf), momentum(expected)
    model.second.requires_grad_(False)
    reference(expected, plain, steps=2)
    for step in range(2):
        take_step(model, optimizer, step)
    assert_same_parameters(model, expected)
    model.second.requires_grad_(True)
    take_step(model, optimizer, 2)
    assert same_on_all_ranks(model) and not equal(model.second.weight, expected.second.weight)


def check_parameters_that_were_frozen_first_are_in_no_pack() -> None:
    model = net()
    model.second.requires_grad_(False)
    optimizer = distributed(model, fusion_bytes=math.inf)
    model.second.requires_grad_(True)
    with sent() as names:
        take_step(model, optimizer, 0)
    assert {"gradient.second.weight", "gradient.second.bias"} < set(names), names
    assert same_on_all_ranks(model)


def check_types_have_packs_of_their_own() -> None:
    model = net()
    model.second.double()
    model.forward = lambda data: model.second(torch.relu(model.first(data)).double())  # type: ignore[method-assign]
    optimizer = distributed(model, fusion_bytes=math.inf)
    with sent() as names:
        take_step_without_detour(model, optimizer)
    assert {"pack.0.sometimes.bias-first.weight", "pack.1.second.bias-second.weight"} < set(names), names
    assert same_on_all_ranks(model.first) and model.second.weight.grad.dtype is torch.float64


def take_step_without_detour(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    model(inputs(gln.rank(), 0)).square().mean().backward()
    optimizer.step()


def check_places_have_the_memory_format_of_parameters() -> None:
    model = nn.Conv2d(4, 6, 3).to(memory_format=torch.channels_last)
    images = inputs(gln.rank(), 0).reshape(-1)[:320].view(1, 4, 8, 10)
    averages = []
    for fusion_bytes in (None, math.inf):
        optimizer = gln.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0), fusion_bytes=fusion_bytes)
        model.zero_grad(set_to_none=True)
        model(images).square().mean().backward()
        averages.append(model.weight.grad)
        optimizer.step()
    assert equal(*averages)
    assert averages[1].stride() == model.weight.stride()


def check_uses_in_flight_are_errors() -> None:
    for use in (
        lambda model: model.second.bias.grad.norm(),
        lambda model: nn.utils.clip_grad_norm_(model.parameters(), 0.01),
    ):
        model = net()
        optimizer = distributed(model, wait="step", fusion_bytes=math.inf)
        loss_of(model, gln.rank(), 0).backward()  # the pack waits, since it lacks the gradients of `sometimes`
        message = raises(FailedPreconditionError, lambda use=use, model=model: use(model))
        assert "was used after backward() made it" in message, message
        optimizer.step()
        model.second.bias.grad.norm()
    loss_of(model, gln.rank(), 1).backward()
    model.second.bias.grad = torch.zeros(10)
    message = raises(FailedPreconditionError, optimizer.step)
    assert "the gradient of second.bias was changed" in message, message


def check_compressors_get_packs() -> None:
    for wrap in (distributed, crossing):
        model, expected = net(), net()
        optimizer = wrap(model, compression=gln.Compression.fp16, fusion_bytes=math.inf, name=f"half.{wrap.__name__}")
        reference(expected, momentum(expected), 3, detour_rank=0, sent_as=torch.float16)
        for step in range(3):
            take_step(model, optimizer, step, detour=gln.rank() == 0)
        optimizer.synchronize()
        assert_same_parameters(model, expected)
        plan = gln.tensor_plan(f"half.{wrap.__name__}.pack.0.sometimes.bias-first.weight.1050")
        assert sum(plan["partition_bytes"]) == 2 * sum(each.numel() for each in model.parameters()), plan


def check_ranks_join_with_packs() -> None:
    trained = []
    for fusion_bytes in (None, 500, math.inf):
        model = net()
        optimizer = distributed(model, fusion_bytes=fusion_bytes)
        for step in range(gln.rank() + 1):
            take_step(model, optimizer, step)
        gln.join()
        del optimizer  # the next join() answers for the next optimizer alone
        trained.append(model)
    for model in trained[1:]:
        assert_same_parameters(model, trained[0])


def check_another_optimizer_takes_over() -> None:
    model, expected = net(), net()
    earlier = distributed(model, fusion_bytes=math.inf)
    later = gln.DistributedOptimizer(
        torch.optim.SGD(model.second.parameters(), lr=0.1), model.named_parameters(), fusion_bytes=math.inf
    )
    loss_of(model, gln.rank(), 0).backward()
    reference(expected, torch.optim.SGD(expected.parameters(), lr=0), steps=1)
    for ours, wanted in zip(model.parameters(), expected.parameters()):
        assert (ours.grad is None and wanted.grad is None) or equal(ours.grad, wanted.grad)
    later.step()
    assert not earlier._gradients.in_flight


def check_a_converted_model_is_told() -> None:
    model = net()
    optimizer = distributed(model, fusion_bytes=math.inf)
    model.double()

    def train() -> None:
        model(inputs(gln.rank(), 0).double()).sum().backward()
        optimizer.step()  # PyTorch 1.13 has dropped the hooks

    message = raises(FailedPreconditionError, train)
    assert "torch.float64" in message and "before you wrap their optimizer" in message, message


def check_wrong_thresholds_are_refused() -> None:
    model = net()
    wrong: tuple[tuple[type[Exception], Any], ...] = (
        (InvalidArgumentError, 0),
        (InvalidArgumentError, -1),
        (InvalidArgumentError, math.nan),
        (InvalidArgumentError, 1.5),
        (TypeError, True),
        (TypeError, "64k"),
        (TypeError, [1]),
    )
    for kind, value in wrong:
        for wrap in (distributed, crossing):
            message = raises(kind, lambda wrap=wrap, value=value: wrap(model, fusion_bytes=value))
            assert repr(value) in message and "math.inf" in message, message
    message = raises(InvalidArgumentError, lambda: distributed(model, asynchronous=True, fusion_bytes=1))
    assert "asynchronous" in message, message


if __name__ == "__main__":
    torch.set_num_threads(1)
    gln.init()
    run_checks(globals())
    gln.shutdown()
