"""Checks several optimizers of one model, schedulers, copies and uneven data, with one rank per worker."""

from __future__ import annotations

import copy
import io
import pickle
import threading
import warnings

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
    take_step,
)
from torch import nn


def check_two_optimizers_of_one_model() -> None:
    model, expected = net(), net()

    def optimizers(each: nn.Module) -> list[torch.optim.Optimizer]:
        back = [*each.second.parameters(), *each.sometimes.parameters()]
        return [torch.optim.SGD(each.first.parameters(), lr=0.1), torch.optim.Adam(back, lr=0.01)]

    plain = optimizers(expected)
    # Both optimizers get all names. One backward pass makes the gradients of both.
    ours = [gln.DistributedOptimizer(each, model.named_parameters()) for each in optimizers(model)]
    for _ in range(3):
        for each in (*ours, *plain):
            each.zero_grad()
        loss_of(model, gln.rank(), 0, detour=gln.rank() == 0).backward()
        for each in ours:
            each.step()
        reference(expected, Both(plain), steps=1, detour_rank=0)
    assert_same_parameters(model, expected)


class Both:
    """Calls step() and zero_grad() of several optimizers."""

    def __init__(self, optimizers: list[torch.optim.Optimizer]) -> None:
        self._optimizers = optimizers

    def zero_grad(self, set_to_none: bool) -> None:
        for each in self._optimizers:
            each.zero_grad(set_to_none=set_to_none)

    def step(self) -> None:
        for each in self._optimizers:
            each.step()


def check_adversaries() -> None:
    """Trains a GAN as tutorials do: two backward passes for the critic, and one for the generator through both."""
    torch.manual_seed(1)
    generator, critic = nn.Linear(4, 20), nn.Sequential(nn.Linear(20, 8), nn.Tanh(), nn.Linear(8, 1))
    makes, judges = distributed(generator), distributed(critic)
    noise = torch.randn(16, 4, generator=torch.Generator().manual_seed(gln.rank()))
    for step in range(3):
        critic.zero_grad()
        (1 - critic(inputs(gln.rank(), step))).square().mean().backward()
        made = generator(noise)
        critic(made.detach()).square().mean().backward()
        nn.utils.clip_grad_norm_(critic.parameters(), 0.1)
        judges.step()
        generator.zero_grad()
        (1 - critic(made)).square().mean().backward()
        nn.utils.clip_grad_norm_(generator.parameters(), 0.1)
        makes.step()
    assert same_on_all_ranks(nn.ModuleList([generator, critic]))


def check_wrapping_again_takes_over() -> None:
    model, expected = net(), net()
    earlier = distributed(model)
    later = gln.DistributedOptimizer(momentum(model), model.named_parameters())
    reference(expected, momentum(expected), steps=2)
    for step in range(2):
        take_step(model, later, step)
    assert_same_parameters(model, expected)
    assert not earlier._gradients.in_flight


def check_dropped_optimizers_send_nothing() -> None:
    model = net()
    distributed(model)
    loss_of(model, gln.rank(), 0).backward()
    assert gln.size() == 1 or not same_on_all_ranks(Gradients(model))


class Gradients(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        for number, parameter in enumerate(each for each in model.parameters() if each.grad is not None):
            self.register_parameter(str(number), nn.Parameter(parameter.grad.clone()))


def check_schedulers_made_before_wrapping() -> None:
    for give_wrapped in (True, False):
        model = net()
        plain = momentum(model)
        scheduler = torch.optim.lr_scheduler.StepLR(plain, step_size=1, gamma=0.5)
        optimizer = gln.DistributedOptimizer(plain, model.named_parameters())
        gln.broadcast_optimizer_state(optimizer if give_wrapped else plain)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # PyTorch warns if it thinks that the scheduler stepped before the optimizer
            for step in range(3):
                assert optimizer.param_groups[0]["lr"] == 0.1 * 0.5**step
                loss_of(model, gln.rank(), step).backward()
                optimizer.step()
                scheduler.step()
        assert same_on_all_ranks(model)


def check_parameters_that_come_later_are_told() -> None:
    for wrap in (gln.DistributedOptimizer, gln.CrossBarrier):
        model, more = net(), nn.Linear(10, 10)
        plain = momentum(model)
        optimizer = wrap(plain, model if wrap is gln.CrossBarrier else model.named_parameters())
        loss_of(model, gln.rank(), 0).backward()
        plain.add_param_group({"params": more.parameters()})
        message = raises(FailedPreconditionError, optimizer.step)
        assert "has 8 parameters, and had 6" in message and "wrap the optimizer again" in message, message
        again = gln.DistributedOptimizer(plain, [*model.named_parameters(), *more.named_parameters("more")])
        again.synchronize()
        again.zero_grad()
        more(model(inputs(gln.rank(), 0))).square().mean().backward()
        again.step()
        assert same_on_all_ranks(nn.ModuleList([model, more]))


def check_parameters_that_replace_others_are_told() -> None:
    for wrap in (gln.DistributedOptimizer, gln.CrossBarrier):
        model = net()
        optimizer = wrap(momentum(model), model if wrap is gln.CrossBarrier else model.named_parameters())
        model.sometimes = nn.Linear(10, 10)
        optimizer.param_groups[0]["params"][4:] = list(model.sometimes.parameters())
        message = raises(FailedPreconditionError, optimizer.step)
        assert (
            "2 of the optimizer's 6 parameters were added" in message and "wrap the optimizer again" in message
        ), message


def check_what_is_wrapped_is_not_wrapped_again() -> None:
    model = net()
    for wrapped in (
        distributed(model),
        distributed(model, asynchronous=True),
        gln.CrossBarrier(momentum(model), model),
    ):
        for wrap in (
            lambda each: gln.DistributedOptimizer(each, model.named_parameters()),
            lambda each: gln.CrossBarrier(each, model),
        ):
            message = raises(InvalidArgumentError, lambda wrap=wrap, wrapped=wrapped: wrap(wrapped))
            assert "pass the original, unwrapped optimizer" in message, message


def check_a_checkpoint_may_be_loaded_into_either() -> None:
    for wrap in (distributed, lambda model: gln.CrossBarrier(momentum(model), model)):
        model, trained = net(), net()
        loss_of(trained, 0, 0).backward()
        theirs = momentum(trained)
        theirs.step()
        for group in theirs.param_groups:
            group["lr"] = 0.001
        checkpoint = theirs.state_dict()
        optimizer = wrap(model)
        plain = optimizer._own
        for loaded in (plain, optimizer):
            for group in plain.param_groups:
                group["lr"] = 1.0
            plain.state.clear()
            loaded.load_state_dict(copy.deepcopy(checkpoint))
            for each in (plain, optimizer):
                assert each.param_groups[0]["lr"] == 0.001
                buffer = each.state[model.first.weight]["momentum_buffer"]
                assert equal(buffer, theirs.state[trained.first.weight]["momentum_buffer"])


def check_asynchronous_training_exchanges_what_is_unfrozen() -> None:
    """Even if a rank unfreezes parameters earlier than others, all ranks have the same parameters in the end."""
    for everywhere in (True, False):
        model = net(gln.rank())
        model.first.requires_grad_(False)
        before = gln.broadcast(model.first.weight)
        optimizer = distributed(model, asynchronous=True)
        for step in range(4):
            if step == 2 and (everywhere or gln.rank() == 0):
                model.first.requires_grad_(True)
            take_step(model, optimizer, step)
        optimizer.synchronize()
        assert same_on_all_ranks(model)
        assert not equal(model.first.weight, before)


def check_asynchronous_training_tells_of_parameters_that_were_changed() -> None:
    for change in (
        lambda model: model.load_state_dict(net(77).state_dict()),
        lambda model: model.second.bias.data.clamp_(-0.001, 0.001),
    ):
        model = net()
        plain = momentum(model)
        optimizer = gln.DistributedOptimizer(plain, model.named_parameters(), asynchronous=True)
        loss_of(model, gln.rank(), 0).backward()
        optimizer.step()
        optimizer.synchronize()
        change(model)
        wanted = copy.deepcopy(model)
        for call in (optimizer.step, optimizer.synchronize):
            message = raises(FailedPreconditionError, call)
            assert "was changed" in message and "wrap the optimizer again on all ranks" in message, message
        optimizer = gln.DistributedOptimizer(plain, model.named_parameters(), asynchronous=True)
        optimizer.zero_grad(set_to_none=True)
        optimizer.step()
        optimizer.synchronize()
        assert_same_parameters(model, wanted)


def check_asynchronous_training_goes_on_with_nan() -> None:
    model = net()
    optimizer = distributed(model, asynchronous=True)
    for _ in range(2):
        optimizer.zero_grad()
        (loss_of(model, gln.rank(), 0) * float("nan")).backward()
        optimizer.step()
    assert model.first.weight.isnan().all()


def check_sparse_gradients_are_refused() -> None:
    model = nn.Embedding(5, 3, sparse=True)
    optimizer = gln.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
    message = raises(InvalidArgumentError, lambda: model(torch.tensor([1])).sum().backward())
    assert "the gradient of weight is sparse" in message and "sparse=False" in message, message
    optimizer.zero_grad()


def check_optimizers_are_copied_and_pickled() -> None:
    for wrap in (distributed, lambda model: gln.CrossBarrier(momentum(model), model)):
        model = net()
        optimizer = wrap(model)
        loss_of(model, gln.rank(), 0).backward()
        optimizer.step()
        optimizer.synchronize()
        saved = io.BytesIO()
        torch.save(optimizer, saved)
        saved.seek(0)
        for copied in (
            pickle.loads(pickle.dumps(optimizer)),
            copy.deepcopy(optimizer),
            torch.load(saved, weights_only=False),
        ):
            assert type(copied) is torch.optim.SGD
            theirs = copied.param_groups[0]["params"]
            assert all(equal(a, b) for a, b in zip(theirs, model.parameters()))
            assert equal(
                copied.state[theirs[0]]["momentum_buffer"], optimizer.state[model.first.weight]["momentum_buffer"]
            )
        state = io.BytesIO()
        torch.save(optimizer.state_dict(), state)


def check_models_are_copied_and_pickled() -> None:
    for wrap in (distributed, lambda model: gln.CrossBarrier(momentum(model), model)):
        model, expected = net(), net()
        reference(expected, momentum(expected), steps=1)
        optimizer = wrap(model)
        loss_of(model, gln.rank(), 0).backward()
        optimizer.step()
        saved = io.BytesIO()
        torch.save(model, saved)
        assert b"gleaner" not in saved.getvalue(), "the pickle can be loaded without Gleaner"
        saved.seek(0)
        for copied in (copy.deepcopy(model), torch.load(saved, weights_only=False)):
            assert_same_parameters(copied, expected)  # copying a model waits for CrossBarrier's late updates
            loss_of(copied, 0, 0).backward()
        assert_same_parameters(copy.deepcopy(model.first), expected.first)
        loss_of(model, gln.rank(), 1).backward()
        optimizer.step()
        optimizer.synchronize()
        assert same_on_all_ranks(model)


def check_tensors_are_broadcast() -> None:
    root = gln.size() - 1
    assert gln.broadcast(torch.tensor(gln.rank()), root).item() == root
    mine = nn.Parameter(torch.full((3,), float(gln.rank())))
    assert gln.broadcast(mine, root_rank=root).tolist() == [root] * 3
    assert mine[0] == gln.rank()
    assert gln.broadcast_(mine, root) is mine and mine.tolist() == [root] * 3
    assert "dense" in raises(TypeError, lambda: gln.broadcast(torch.eye(2).to_sparse()))


def check_tensors_of_other_shape_or_type_are_not_broadcast() -> None:
    for other in (torch.ones(5), torch.ones(3, dtype=torch.int32), torch.ones(3, 1)):
        if gln.rank() == 0:
            gln.broadcast(torch.ones(3))
        else:
            kept = other.clone()
            message = raises(InvalidArgumentError, lambda other=other: gln.broadcast_(other))
            assert f"{tuple(other.shape)} {other.dtype}" in message and "(3,) torch.float32" in message, message
            assert torch.equal(other, kept)


def check_the_state_of_another_optimizer_is_not_broadcast() -> None:
    model = net()
    if gln.rank() == 0:
        gln.broadcast_optimizer_state(momentum(model))
    else:
        adam = torch.optim.Adam(model.parameters())
        message = raises(InvalidArgumentError, lambda: gln.broadcast_optimizer_state(adam))
        assert "Adam" in message and "SGD" in message, message
        assert "betas" in adam.param_groups[0]


def check_ranks_that_begin_with_different_parameters_are_warned() -> None:
    for odd in (None, 1):
        model = net()
        with torch.no_grad():
            model.first.bias[0] = 1.0 if gln.rank() == odd else 0.0
        for wrap in (
            lambda each: gln.DistributedOptimizer(momentum(each)),
            lambda each: gln.CrossBarrier(momentum(each), each),
        ):
            optimizer = wrap(model)
            if gln.rank() == 0:
                model.second.weight.requires_grad_(False)  # ranks may freeze different parameters
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                for step in range(2):
                    take_step(model, optimizer, gln.rank(), step)
                optimizer.synchronize()
            model.second.weight.requires_grad_(True)
            told = [str(each.message) for each in told if "different parameters" in str(each.message)]
            assert len(told) == (odd is not None), told
            for each in told:
                assert "rank 1 has others than rank 0" in each and "broadcast_parameters(" in each, each
            for parameter in model.parameters():
                parameter.grad = None


def check_unnamed_push_pulls_come_from_one_thread() -> None:
    gln.push_pull(torch.ones(3))
    told = []
    other = threading.Thread(
        target=lambda: told.append(raises(FailedPreconditionError, lambda: gln.push_pull(torch.ones(3))))
    )
    other.start()
    other.join()
    assert "name=" in told[0], told
    named = threading.Thread(target=lambda: told.append(gln.push_pull(torch.ones(3), name="named").sum().item()))
    named.start()
    named.join()
    assert told[1] == 3


def check_ranks_join_when_their_data_ends() -> None:
    """Rank r has r + 1 batches. Ranks without a batch contribute zeros, and all ranks end with the same parameters."""
    for more in ({}, {"wait": "step"}, {"backward_passes_per_step": 2}):
        model, expected = net(), net()
        optimizer, plain = distributed(model, **more), momentum(expected)
        passes = more.get("backward_passes_per_step", 1)
        for step in range(gln.rank() + 1):
            optimizer.zero_grad()
            for _ in range(passes):
                loss_of(model, gln.rank(), step).backward()
            optimizer.step()
        assert gln.join() == gln.size() - 1
        for step in range(gln.size()):
            plain.zero_grad(set_to_none=True)
            for rank in range(step, gln.size()):
                for _ in range(passes):
                    (loss_of(expected, rank, step) / gln.size()).backward()
            plain.step()
        for ours, wanted in zip(model.parameters(), expected.parameters()):
            assert torch.allclose(ours, wanted, rtol=1e-5)
        assert same_on_all_ranks(model)
        optimizer.zero_grad()
        loss_of(model, gln.rank(), 9).backward()  # the next epoch, in which all ranks have the last rank's momentum
        optimizer.step()
        assert same_on_all_ranks(model)
        del optimizer


def check_adversaries_join() -> None:
    first, second = net(1), net(2)
    optimizers = [distributed(first), distributed(second)]
    for step in range(2 * (gln.size() - gln.rank())):  # here rank 0 has the most batches
        for model, optimizer in zip((first, second), optimizers):
            take_step(model, optimizer, step)
    assert gln.join() == 0
    assert same_on_all_ranks(nn.ModuleList([first, second]))
    assert gln.join() == gln.size() - 1, "all at once: the last rank"


def check_what_cannot_join() -> None:
    model = net()
    _asynchronous = distributed(model, asynchronous=True)
    message = raises(FailedPreconditionError, gln.join)
    assert "DistributedOptimizer that averages" in message and "asynchronous training" in message, message
    optimizer = distributed(model, wait="step")
    loss_of(model, gln.rank(), 0).backward()
    assert "step()" in raises(FailedPreconditionError, gln.join)
    optimizer.step()
    del optimizer
    _crossing = gln.CrossBarrier(momentum(model), model)
    assert "CrossBarrier" in raises(FailedPreconditionError, gln.join)


if __name__ == "__main__":
    torch.set_num_threads(1)
    gln.init()
    run_checks(globals())
    gln.shutdown()
