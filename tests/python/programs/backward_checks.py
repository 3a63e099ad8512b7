"""Checks when averages are in place, and which uses of gradients work or raise errors, with one rank per worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import gleaner.torch as gln
import torch
from checking import raises, run_checks
from gleaner import FailedPreconditionError, InvalidArgumentError
from small_training import (
    assert_same_parameters,
    distributed,
    equal,
    inputs,
    loss_of,
    momentum,
    net,
    reference,
    same_on_all_ranks,
)
from torch import nn
from torch.utils.checkpoint import checkpoint


def check_averages_are_in_place_after_backward() -> None:
    model, expected = net(), net()
    optimizer = distributed(model)
    reference(expected, momentum(expected), steps=1)
    loss_of(model, gln.rank(), 0).backward()
    for ours, wanted in zip(model.parameters(), expected.parameters()):
        assert (ours.grad is None and wanted.grad is None) or equal(ours.grad, wanted.grad)
    optimizer.step()
    assert_same_parameters(model, expected)


def check_gradients_may_be_changed_after_backward() -> None:
    """Clipping and unscaling between backward() and step() give the same result as in one process."""

    def clip(model: nn.Module) -> None:
        nn.utils.clip_grad_norm_(model.parameters(), 0.01)

    def unscale(model: nn.Module) -> None:
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.grad.mul_(1 / 8)

    for change in (clip, unscale):
        for passes in (1, 2):
            model, expected = net(), net()
            optimizer, plain = distributed(model, backward_passes_per_step=passes), momentum(expected)
            with mock.patch.object(plain, "step", stepping_after(plain, change, expected)):
                reference(expected, plain, steps=3, passes=passes)
            for step in range(3):
                optimizer.zero_grad()
                for number in range(passes):
                    loss_of(model, gln.rank(), step * passes + number).backward()
                change(model)
                optimizer.step()
            assert_same_parameters(model, expected)


def stepping_after(plain: torch.optim.Optimizer, change: Callable[[nn.Module], None], model: nn.Module) -> Any:
    step = plain.step

    def change_and_step() -> None:
        change(model)
        step()

    return change_and_step


def check_gradients_may_be_zeroed_in_every_way() -> None:
    for zero in (
        lambda model, optimizer: optimizer.zero_grad(set_to_none=False),
        lambda model, optimizer: optimizer.zero_grad(set_to_none=True),
        lambda model, optimizer: model.zero_grad(set_to_none=False),
        lambda model, optimizer: model.zero_grad(set_to_none=True),
    ):
        for passes in (1, 2):
            model = net()
            optimizer = distributed(model, backward_passes_per_step=passes)
            for step in range(3):
                for number in range(passes):
                    loss_of(model, gln.rank(), step * passes + number, detour=step == gln.rank()).backward()
                optimizer.step()
                zero(model, optimizer)
            assert same_on_all_ranks(model)


def check_several_backwards_before_a_step_add_up() -> None:
    """As with DDP, each backward pass of a second loss, or of the same graph again, is averaged by itself."""
    model, expected = net(), net()
    optimizer, plain = distributed(model), momentum(expected)
    data, target = inputs(0, 0), 3.0  # the same on all ranks, so that rounding does not depend on the number of ranks
    for trained, its_optimizer in ((model, optimizer), (expected, plain)):
        its_optimizer.zero_grad()
        trained(data).square().mean().backward()
        loss = (trained(data) - target).square().mean()
        loss.backward(retain_graph=True)
        loss.backward()
        its_optimizer.step()
    for ours, wanted in zip(model.parameters(), expected.parameters()):
        assert torch.allclose(ours, wanted, rtol=1e-5)
    assert same_on_all_ranks(model)


def check_losses_with_parameters_of_their_own() -> None:
    model, expected = nn.ModuleList([net(1), net(2)]), nn.ModuleList([net(1), net(2)])
    optimizer = distributed(model)
    for number in range(2):
        reference(expected[number], momentum(expected[number]), steps=1)
    for part in model:
        loss_of(part, gln.rank(), 0).backward()
    optimizer.step()
    assert_same_parameters(model, expected)


def check_a_changed_gradient_in_flight_is_an_error() -> None:
    for change in (
        lambda model: nn.utils.clip_grad_norm_(model.parameters(), 0.01),
        lambda model: model.zero_grad(set_to_none=True),
        lambda model: model.zero_grad(set_to_none=False),
        lambda model: model.first.weight.grad.data.clamp_(-0.001, 0.001),
        lambda model: model.first.weight.grad.numpy().fill(0),
    ):
        for wrap in (
            lambda model: distributed(model, wait="step"),
            lambda model: gln.CrossBarrier(momentum(model), model),
        ):
            model = net()
            optimizer = wrap(model)
            loss_of(model, gln.rank(), 0).backward()

            def change_and_step(
                model: nn.Module = model,
                optimizer: torch.optim.Optimizer = optimizer,
                change: Callable[[nn.Module], Any] = change,
            ) -> None:
                change(model)
                optimizer.step()
                optimizer.synchronize()

            message = raises(FailedPreconditionError, change_and_step)
            assert "the gradient of" in message and "call optimizer.synchronize() before you clip" in message
    model = net()
    optimizer = distributed(model, backward_passes_per_step=2)
    loss_of(model, gln.rank(), 0).backward()  # too few backward passes, as at the end of an epoch
    nn.utils.clip_grad_norm_(model.parameters(), 0.01)
    assert "fewer backward passes" in raises(FailedPreconditionError, optimizer.step)


def check_a_gradient_in_flight_cannot_be_read() -> None:
    model = net()
    optimizer = distributed(model, wait="step")
    loss_of(model, gln.rank(), 0).backward()
    for read in (
        lambda: model.first.weight.grad.norm(),
        lambda: torch.stack([parameter.grad for parameter in model.first.parameters()]),
    ):
        assert "the gradient of first.weight was used" in raises(FailedPreconditionError, read)
    optimizer.step()
    assert type(model.first.weight.grad) is torch.Tensor
    model.first.weight.grad.data.clamp_(-0.001, 0.001)
    loss_of(model, gln.rank(), 1).backward()
    del optimizer
    model.zero_grad(set_to_none=False)  # no step needs the averages any more


def check_waiting_in_step_gives_the_same_parameters() -> None:
    model, expected = net(), net()
    optimizer = distributed(model, wait="step", backward_passes_per_step=2)
    reference(expected, momentum(expected), steps=3, passes=2, detour_rank=0)
    for step in range(3):
        optimizer.zero_grad()
        for number in range(2):
            loss_of(model, gln.rank(), 2 * step + number, detour=gln.rank() == 0).backward()
        optimizer.step()
    assert_same_parameters(model, expected)


def check_parts_of_one_tensor_may_be_gradients() -> None:
    """Views of one tensor share its version counter, which must not count as a change in flight."""
    model = net()
    memory = torch.zeros(sum(parameter.numel() for parameter in model.parameters()))
    start = 0
    for parameter in model.parameters():
        parameter.grad = memory[start : start + parameter.numel()].view(parameter.shape)
        start += parameter.numel()
    for wait in ("backward", "step"):
        optimizer = distributed(model, wait=wait)
        loss_of(model, gln.rank(), 0).backward()
        optimizer.step()
        assert memory.any()
        optimizer.zero_grad(set_to_none=False)
        assert not memory.any()


def check_without_a_gradient_on_any_rank_nothing_moves() -> None:
    for wrap in (
        distributed,
        lambda model: distributed(model, wait="step"),
        lambda model: gln.CrossBarrier(momentum(model), model),
    ):
        model = net()
        optimizer = wrap(model)
        before = [parameter.detach().clone() for parameter in model.sometimes.parameters()]
        for step in range(3):
            optimizer.zero_grad(set_to_none=True)
            loss_of(model, gln.rank(), step).backward()
            optimizer.step()
        optimizer.synchronize()
        assert all(parameter.grad is None for parameter in model.sometimes.parameters())
        assert all(equal(old, new) for old, new in zip(before, model.sometimes.parameters())), "weight decay moved it"


def check_parameters_are_frozen_and_unfrozen() -> None:
    model, expected = net(), net()
    plain = momentum(expected)
    for each in (model, expected):
        each.second.requires_grad_(False)
    optimizer = distributed(model)
    frozen = [parameter.detach().clone() for parameter in model.second.parameters()]
    for step in range(4):
        for each in (model, expected):
            each.second.requires_grad_(step >= 2)
            each.first.bias.requires_grad_(step != 3)
        reference(expected, plain, steps=1)
        optimizer.zero_grad(set_to_none=True)
        loss_of(model, gln.rank(), 0).backward()
        optimizer.step()
        if step == 1:
            assert all(equal(old, new) for old, new in zip(frozen, model.second.parameters()))
    assert not equal(frozen[0], model.second.weight)
    assert_same_parameters(model, expected)


def check_a_parameter_frozen_on_one_rank_counts_as_zeros_there() -> None:
    model = net()
    model.second.requires_grad_(gln.rank() != 0)
    optimizer = distributed(model)
    for step in range(2):
        optimizer.zero_grad()
        loss_of(model, gln.rank(), step).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        optimizer.step()
    assert same_on_all_ranks(model)


def check_crossing_does_not_take_unfrozen_parameters() -> None:
    model = net()
    model.second.requires_grad_(False)
    optimizer = gln.CrossBarrier(momentum(model), model)
    model.second.requires_grad_(True)
    message = raises(FailedPreconditionError, lambda: loss_of(model, gln.rank(), 0).backward())
    assert "CrossBarrier" in message and "frozen" in message, message
    optimizer._gradients.abandon()


def check_checkpointed_segments() -> None:
    class Checkpointed(nn.Module):
        def __init__(self, reentrant: bool, head: bool) -> None:
            super().__init__()
            torch.manual_seed(5)
            self.reentrant = reentrant
            self.segments = nn.ModuleList(nn.Linear(20, 20) for _ in range(3))
            self.head = nn.Linear(20, 1) if head else nn.Identity()
            self.unused = nn.Linear(2, 2)

        def forward(self, data: torch.Tensor) -> torch.Tensor:
            data = data.clone().requires_grad_()
            for segment in self.segments:
                data = checkpoint(segment, data, use_reentrant=self.reentrant)
            return self.head(data)

    for head in (True, False):
        results = []
        for reentrant in (True, False):
            model = Checkpointed(reentrant, head)
            optimizer = distributed(model)
            for step in range(2):
                optimizer.zero_grad()
                model(inputs(gln.rank(), step)).square().mean().backward()
                nn.utils.clip_grad_norm_(model.parameters(), 0.01)
                optimizer.step()
            results.append(model)
        assert_same_parameters(*results)
        assert same_on_all_ranks(results[0])
    model = Checkpointed(True, False)
    optimizer = distributed(model, backward_passes_per_step=2)
    for step in range(2):
        model(inputs(gln.rank(), step)).square().mean().backward()
    assert "use_reentrant=False" in raises(FailedPreconditionError, optimizer.step)


def check_derivatives_of_gradients() -> None:
    """torch.autograd.grad() averages nothing. The gradients of a penalty on its result are averaged as usual."""
    model = net()
    optimizer = distributed(model)
    data = inputs(gln.rank(), 0).requires_grad_()
    (slope,) = torch.autograd.grad(model(data).sum(), data, create_graph=True)
    assert all(parameter.grad is None for parameter in model.parameters())
    (slope.norm() - 1).square().backward()
    optimizer.step()
    assert same_on_all_ranks(model)


def check_closures_are_called_several_times() -> None:
    for search in (None, "strong_wolfe"):
        model = net()
        plain = torch.optim.LBFGS(model.parameters(), max_iter=4, line_search_fn=search)
        optimizer = gln.DistributedOptimizer(plain, model.named_parameters())

        def closure(model: nn.Module = model, optimizer: torch.optim.Optimizer = optimizer) -> torch.Tensor:
            optimizer.zero_grad()
            loss = loss_of(model, gln.rank(), 0)
            loss.backward()
            return gln.push_pull(loss.detach(), name="loss")

        first, last = optimizer.step(closure), optimizer.step(closure)
        assert last < first
        assert same_on_all_ranks(model)


def check_a_backward_that_fails_is_told() -> None:
    model = net()
    optimizer = distributed(model)
    hook = model.first.weight.register_hook(lambda _: 1 / 0)
    raises(ZeroDivisionError, lambda: loss_of(model, gln.rank(), 0).backward())
    hook.remove()
    for call in (optimizer.step, optimizer.zero_grad, optimizer.synchronize):
        assert "backward() failed" in raises(FailedPreconditionError, call)
    assert "failed" in raises(FailedPreconditionError, lambda: loss_of(model, gln.rank(), 0).backward())


def check_ranks_at_different_steps_are_told() -> None:
    model = net()
    optimizer = distributed(model)
    loss_of(model, gln.rank(), 0).backward()
    if gln.rank() != 0:
        optimizer.step()
    message = raises(FailedPreconditionError, lambda: loss_of(model, gln.rank(), 1).backward())
    assert "rank 0 averages gradients for the 2nd time in its step 1" in message, message
    assert "rank 1 averages gradients for the 1st time in its step 2" in message, message


def check_passes_may_change_in_training() -> None:
    model, expected = net(), net()
    optimizer = distributed(model)
    optimizer.set_backward_passes_per_step(2)
    reference(expected, momentum(expected), steps=2, passes=2)
    for step in range(2):
        optimizer.zero_grad()
        for number in range(2):
            loss_of(model, gln.rank(), step * 2 + number).backward()
        optimizer.step()
    assert_same_parameters(model, expected)
    assert "at least 1" in raises(InvalidArgumentError, lambda: optimizer.set_backward_passes_per_step(0))


if __name__ == "__main__":
    torch.set_num_threads(1)
    gln.init()
    run_checks(globals())
    gln.shutdown()
