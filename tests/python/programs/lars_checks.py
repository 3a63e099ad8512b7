"""Checks LARS and WarmUp with wrapped optimizers, for any number of workers with one rank each."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gleaner.torch as gln
import torch
from checking import raises, run_checks
from gleaner import InvalidArgumentError
from small_training import (
    assert_same_parameters,
    inputs,
    loss_of,
    momentum,
    net,
    reference,
    same_on_all_ranks,
    take_step,
)
from torch import nn


def lars(model: nn.Module) -> torch.optim.Optimizer:
    """Returns LARS over two groups, of which one is excluded."""
    plain = momentum(model)
    biases = [each for each in model.parameters() if each.ndim == 1]
    plain.param_groups[0]["params"] = [each for each in model.parameters() if each.ndim > 1]
    plain.add_param_group({"params": biases, "weight_decay": 0.0, "lars": False})
    return gln.LARS(plain, trust_coefficient=0.05)


def over_distributed(model: nn.Module, **more: Any) -> torch.optim.Optimizer:
    return gln.DistributedOptimizer(lars(model), model.named_parameters(), **more)


def over_cross_barrier(model: nn.Module, **more: Any) -> torch.optim.Optimizer:
    return gln.CrossBarrier(lars(model), model, **more)


def check_lars_has_the_bits_of_one_process_with_the_mean_gradient() -> None:
    for wrap, more in (
        (over_distributed, {}),
        (over_distributed, {"wait": "step"}),
        (over_distributed, {"compression": gln.Compression.fp16}),
        (over_cross_barrier, {}),
    ):
        model, expected, plain = net(), net(), net()
        optimizer = wrap(model, **more)
        for step in range(4):
            take_step(model, optimizer, step)
        optimizer.synchronize()
        sent_as = torch.float16 if "compression" in more else torch.float32
        reference(expected, lars(expected), steps=4, sent_as=sent_as)
        reference(plain, momentum(plain), steps=4)
        assert_same_parameters(model, expected)
        assert not torch.equal(plain.first.weight, expected.first.weight)


def check_closures_of_lars_are_averaged_first() -> None:
    model, expected = net(), net()
    optimizer = over_distributed(model)
    for step in range(3):

        def closure(step: int = step) -> torch.Tensor:
            optimizer.zero_grad()
            loss = loss_of(model, gln.rank(), step)
            loss.backward()
            return loss

        assert optimizer.step(closure) > 0
    reference(expected, lars(expected), steps=3)
    assert_same_parameters(model, expected)


def check_unscaled_gradients_reach_lars() -> None:
    """Scales losses as GradScaler does, which has no effect on a machine without a GPU."""
    for wrap in (over_distributed, over_cross_barrier):
        model, expected = net(), net()
        optimizer = wrap(model)
        for step in range(3):
            optimizer.zero_grad()
            (loss_of(model, gln.rank(), step) * 1024).backward()
            optimizer.synchronize()
            for parameter in model.parameters():
                if parameter.grad is not None:
                    parameter.grad /= 1024
            optimizer.step()
        optimizer.synchronize()
        reference(expected, lars(expected), steps=3)
        assert_same_parameters(model, expected)


def check_warm_ups_drive_wrapped_optimizers() -> None:
    for wrap in (over_distributed, over_cross_barrier):
        for of_original in (True, False):
            model, expected = net(), net()
            optimizer, alone = wrap(model), lars(expected)
            schedulers = [
                gln.WarmUp(each, 2, torch.optim.lr_scheduler.StepLR(own, 1, gamma=0.5))
                for each, own in ((optimizer, optimizer._own if of_original else optimizer), (alone, alone))
            ]
            for step in range(5):
                take_step(model, optimizer, step)
                schedulers[0].step()
            optimizer.synchronize()
            reference(expected, Scheduled(alone, schedulers[1]), steps=5)
            assert_same_parameters(model, expected)


class Scheduled:
    """Calls step() of a scheduler after each step() of its optimizer."""

    def __init__(self, optimizer: torch.optim.Optimizer, scheduler: Any) -> None:
        self._optimizer, self._scheduler = optimizer, scheduler

    def zero_grad(self, set_to_none: bool) -> None:
        self._optimizer.zero_grad(set_to_none=set_to_none)

    def step(self) -> None:
        self._optimizer.step()
        self._scheduler.step()


def check_checkpoints_and_copies_of_lars() -> None:
    for wrap in (over_distributed, over_cross_barrier):
        model = net()
        optimizer = wrap(model)
        take_step(model, optimizer, 0)
        state = optimizer.state_dict()
        assert [group["lars"] for group in state["param_groups"]] == [None, False]
        assert [group["weight_decay"] for group in state["param_groups"]] == [0.01, 0.0]
        for again in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
            assert type(again) is type(optimizer._own) and type(again).__name__ == "SGDWithLARS"
        other = net()
        other.load_state_dict(model.state_dict())
        resumed = wrap(other)
        gln.broadcast_optimizer_state(resumed)
        resumed.load_state_dict(copy.deepcopy(state))  # otherwise both would share their momentum
        for each, optimizes in ((model, optimizer), (other, resumed)):
            take_step(each, optimizes, 1)
            optimizes.synchronize()
        assert_same_parameters(other, model)


def check_lars_goes_inside() -> None:
    model = net()
    for wrapped in (over_distributed(model), over_cross_barrier(net())):
        message = raises(InvalidArgumentError, lambda wrapped=wrapped: gln.LARS(wrapped))
        assert "DistributedOptimizer(LARS(" in message, message


def check_asynchronous_training_with_lars() -> None:
    model = net()
    optimizer = over_distributed(model, asynchronous=True)
    before = model(inputs(0, 0)).square().mean().item()
    for step in range(20):
        take_step(model, optimizer, step)
    optimizer.synchronize()
    assert same_on_all_ranks(model)
    assert model(inputs(0, 0)).square().mean().item() < before


if __name__ == "__main__":
    torch.set_num_threads(1)
    gln.init()
    run_checks(globals())
    gln.shutdown()
