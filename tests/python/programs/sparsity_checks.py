"""Checks coarse-grained sparse communication, for any number of workers with one rank each.

sparse_reference() makes the steps of all ranks in one process from the text of GradientFlow §3.2 alone, one chunk at a
time, with none of the code under test.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import gleaner.torch as gln
import torch
from checking import raises, run_checks
from fusion_checks import sent
from gleaner import FailedPreconditionError, InvalidArgumentError
from small_training import (
    assert_same_parameters,
    loss_of,
    momentum,
    net,
    ordered_sum,
    same_on_all_ranks,
    take_step,
)
from torch import nn

CHUNK = 100  # elements; the small network has 1050, in 11 chunks
WARM_UP = 4


def sparse(model: nn.Module, share: float = 0.7, **more: Any) -> torch.optim.Optimizer:
    settings = {"warm_up_steps": WARM_UP, "chunk_elements": CHUNK, **more.pop("settings", {})}
    optimizer = more.pop("optimizer", momentum)(model)
    return gln.DistributedOptimizer(
        optimizer, model.named_parameters(), sparsity=gln.Sparsity(share, **settings), **more
    )


class Reference:
    """The steps of all ranks in one process, for SGD with momentum and weight decay as of momentum().

    With `trust`, the trust coefficient, LARS scales gradients by the norms of whole layers.
    """

    def __init__(
        self, model: nn.Module, share: float, sent_as: torch.dtype = torch.float32, trust: float | None = None
    ) -> None:
        self.model, self.share, self.sent_as, self.trust = model, share, sent_as, trust
        self.parameters = list(model.parameters())[::-1]
        elements = sum(each.numel() for each in self.parameters)
        self.chunks = math.ceil(elements / CHUNK)
        self.important = set(range(self.chunks))
        self.histories = [torch.zeros(self.chunks * CHUNK) for _ in range(gln.size())]
        self.velocity = torch.zeros(self.chunks * CHUNK)
        self.step = 0

    def rows(self, vector: torch.Tensor) -> torch.Tensor:
        return vector.view(self.chunks, CHUNK)

    def take_step(self, loss: Callable[[int, int], torch.Tensor]) -> None:
        gradients = []
        for rank in range(gln.size()):
            self.model.zero_grad(set_to_none=True)
            loss(rank, self.step).backward()
            flat = torch.zeros(self.chunks * CHUNK)
            parts = [torch.zeros_like(each) if each.grad is None else each.grad for each in self.parameters]
            packed = torch.cat([each.reshape(-1) for each in parts])
            flat[: packed.numel()] = packed
            gradients.append(flat + self.histories[rank])
        averages, norms = torch.zeros(self.chunks * CHUNK), []
        for chunk in range(self.chunks):
            rows = [self.rows(each)[chunk] for each in gradients]
            if chunk in self.important:
                sent = [each.to(self.sent_as) for each in rows]
                average = ordered_sum(sent, gln.size()).float()
                self.rows(averages)[chunk] = average
                rows = [average] * gln.size()
            norms.append(ordered_sum([torch.linalg.vector_norm(each, 1).reshape(1) for each in rows]).item())
            for history, row in zip(self.histories, rows):
                self.rows(history)[chunk] = 0 if chunk in self.important else 0.9 * row
        self.update(averages)
        self.step += 1
        number = self.chunks - math.floor(self.chunks * self.share * min(1, self.step / WARM_UP))
        self.important = set(sorted(range(self.chunks), key=lambda chunk: (-norms[chunk], chunk))[:number])

    def update(self, averages: torch.Tensor) -> None:
        begin = 0
        for parameter in self.parameters:
            end = begin + parameter.numel()
            mask = torch.tensor([element // CHUNK in self.important for element in range(begin, end)])
            values, gradient = parameter.data.view(-1), averages[begin:end]
            velocity = self.velocity[begin:end]
            direction = gradient + 0.01 * values
            if self.trust is not None and parameter.ndim > 1 and gradient.any():
                direction *= self.trust * values.norm() / (gradient.norm() + 0.01 * values.norm())
            new = direction.clone() if self.step == 0 else 0.9 * velocity + direction
            velocity[mask] = new[mask]
            values[mask] -= 0.1 * velocity[mask]
            begin = end


def check_equals_the_algorithm_of_the_paper() -> None:
    for more, dtype in (({}, torch.float32), ({"compression": gln.Compression.fp16}, torch.float16)):
        for fusion_bytes in (None, 1, 2 * CHUNK * 4, math.inf):
            model, expected = net(), net()
            optimizer = sparse(model, fusion_bytes=fusion_bytes, **more)
            reference = Reference(expected, 0.7, dtype)
            for step in range(10):
                take_step(model, optimizer, step, True)
                reference.take_step(lambda rank, step, model=expected: loss_of(model, rank, step, True))
                for (name, ours), theirs in zip(model.named_parameters(), expected.parameters()):
                    # The last bit of a float32 can decide how a gradient is rounded to float16.
                    least = 1e-7 if dtype is torch.float32 else 1e-5
                    assert torch.allclose(ours, theirs, rtol=1e-5, atol=least), (
                        step,
                        name,
                        (ours - theirs).abs().max(),
                    )
            assert len(reference.important) == 4
            assert same_on_all_ranks(model)
            del optimizer


def check_lars_takes_the_norms_of_whole_layers() -> None:
    model, expected = net(), net()
    optimizer = sparse(model, optimizer=lambda model: gln.LARS(momentum(model), trust_coefficient=0.05))
    reference = Reference(expected, 0.7, trust=0.05)
    for step in range(10):
        take_step(model, optimizer, step, True)
        reference.take_step(lambda rank, step: loss_of(expected, rank, step, True))
        for (name, ours), theirs in zip(model.named_parameters(), expected.parameters()):
            assert torch.allclose(ours, theirs, rtol=1e-5, atol=1e-7), (step, name, (ours - theirs).abs().max())
    assert len(reference.important) == 4 and optimizer.param_groups[0]["weight_decay"] == 0.01
    assert same_on_all_ranks(model)


def check_without_sparsity_it_has_the_bits_of_dense_sums() -> None:
    def adam(model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.Adam(model.parameters(), lr=0.01)

    for wrapped, settings in (
        (momentum, {}),
        (momentum, {"chunk_elements": 5000, "warm_up_steps": 0}),
        (adam, {"momentum": 0.9}),
    ):
        model, expected = net(), net()
        share = 0.9 if "chunk_elements" in settings else 0
        optimizer = sparse(model, share, optimizer=wrapped, settings=settings)
        dense = gln.DistributedOptimizer(wrapped(expected), expected.named_parameters())
        for step in range(4):
            take_step(model, optimizer, step, gln.rank() == 0)
            take_step(expected, dense, step, gln.rank() == 0)
        assert_same_parameters(model, expected)
        del optimizer, dense


def check_a_step_sends_its_share() -> None:
    model = net()
    optimizer = sparse(model, 0.7, settings={"warm_up_steps": 2}, fusion_bytes=2 * CHUNK * 4)
    for step, (full, others) in enumerate(((5, ["packet.1x100"]), (4, []), (2, []), (2, []))):
        with sent() as names:
            take_step(model, optimizer, step, True)
        packets = [f"packet.{number}.2x100" for number in range(full)] + others
        assert sorted(names) == sorted(["norms", *packets, "roll"]), (step, names)


def check_clipping_and_reading_see_averages_and_zeros() -> None:
    model = net()
    optimizer = sparse(model, settings={"warm_up_steps": 0})
    for step in range(2):
        optimizer.zero_grad()
        loss_of(model, gln.rank(), step, True).backward()
        if step == 0:
            optimizer.step()
    flat = torch.cat([each.grad.reshape(-1) for each in reversed(list(model.parameters()))])
    chunks = [bool(each.any()) for each in flat.split(CHUNK)]
    assert sum(chunks) == 4, chunks
    before = [each.detach().clone() for each in model.parameters()]
    nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
    optimizer.step()
    after = torch.cat([(a - b).reshape(-1) for a, b in reversed(list(zip(model.parameters(), before)))])
    assert [bool(each.any()) for each in after.split(CHUNK)] == chunks
    assert same_on_all_ranks(model)


def check_gradients_that_some_or_no_ranks_have() -> None:
    model, expected = net(), net()
    optimizer, reference = sparse(model), Reference(expected, 0.7)
    for step in range(6):
        take_step(model, optimizer, step, gln.rank() == 0)
        reference.take_step(lambda rank, step: loss_of(expected, rank, step, rank == 0))
    for ours, theirs in zip(model.parameters(), expected.parameters()):
        assert torch.allclose(ours, theirs, rtol=1e-5, atol=1e-7)
    before = [each.detach().clone() for each in model.sometimes.parameters()]
    history = optimizer.state_dict()["gleaner.sparsity"]["history"]
    for step in range(6, 9):
        kept = history[:110].clone()  # of model.sometimes, which comes first
        optimizer.zero_grad(set_to_none=True)
        loss_of(model, gln.rank(), step).backward()
        optimizer.step()
        assert model.sometimes.weight.grad is None
        assert torch.equal(kept, history[:110]), "what nobody adds to waits"
    assert all(torch.equal(a, b) for a, b in zip(before, model.sometimes.parameters()))
    assert same_on_all_ranks(model)


def check_a_nan_is_on_all_ranks_and_leaves_no_trace() -> None:
    model = net()
    optimizer = sparse(model, settings={"warm_up_steps": 0})
    for step in range(3):
        take_step(model, optimizer, step, True)
    before = copy.deepcopy(optimizer.state_dict()["gleaner.sparsity"])
    optimizer.zero_grad()
    loss = loss_of(model, gln.rank(), 3, True)
    (loss * (math.nan if gln.rank() == gln.size() - 1 else 1)).backward()
    assert all(each.grad.isnan().any() for each in model.parameters()), "GradScaler skips the step on all ranks"
    optimizer.zero_grad()
    after = optimizer.state_dict()["gleaner.sparsity"]
    assert after["step"] == before["step"] and torch.equal(after["important"], before["important"])
    assert torch.equal(after["history"], before["history"])
    take_step(model, optimizer, 3, True)
    assert all(each.isfinite().all() for each in model.parameters())
    assert same_on_all_ranks(model)


def check_a_loaded_state_goes_on_with_the_same_bits() -> None:
    model = net()
    optimizer = sparse(model)
    for step in range(3):
        take_step(model, optimizer, step, True)
    saved = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    for step in range(3, 8):
        take_step(model, optimizer, step, True)
    again = net(seed=2)
    restarted = sparse(again)
    again.load_state_dict(saved[0])
    restarted.load_state_dict(saved[1])
    for step in range(3, 8):
        take_step(again, restarted, step, True)
    assert_same_parameters(again, model)
    told = raises(
        InvalidArgumentError, lambda: sparse(net(), settings={"chunk_elements": 50}).load_state_dict(saved[1])
    )
    assert "11 chunks of 100 elements" in told and "21 of 50" in told, told
    torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9).load_state_dict(saved[1])


def check_ways_to_wait_passes_and_closures() -> None:
    models = []
    for more in ({}, {"wait": "step"}):
        model = net()
        optimizer = sparse(model, backward_passes_per_step=2, **more)
        for step in range(6):
            optimizer.zero_grad(set_to_none=step % 2 == 0)
            for number in range(2):
                loss_of(model, gln.rank(), 2 * step + number, True).backward()
            optimizer.step()
        models.append(model)
    assert_same_parameters(*models)
    model, expected = net(), net()
    optimizer, usual = sparse(model), sparse(expected)
    for step in range(6):

        def closure(step: int = step) -> torch.Tensor:
            optimizer.zero_grad()
            loss = loss_of(model, gln.rank(), step, True)
            loss.backward()
            return loss

        assert optimizer.step(closure).item() > 0
        take_step(expected, usual, step, True)
    assert_same_parameters(model, expected)


def check_ranks_that_joined_follow_the_choice() -> None:
    model = net()
    optimizer = sparse(model, settings={"warm_up_steps": 0})
    for step in range(2 + 2 * gln.rank()):
        take_step(model, optimizer, step, True)
    gln.join()
    for step in range(2):
        take_step(model, optimizer, step, True)
    gln.broadcast_parameters(model.state_dict(), root_rank=gln.size() - 1)
    assert same_on_all_ranks(model)


def check_groups_have_their_own_momentum() -> None:
    model = net()
    groups = [{"params": [*model.first.parameters()], "momentum": 0.5}, {"params": [*model.second.parameters()]}]
    groups.append({"params": [*model.sometimes.parameters()], "momentum": 0.0})
    optimizer = sparse(model, optimizer=lambda _: torch.optim.SGD(groups, lr=0.1, momentum=0.9))
    for step in range(3):
        take_step(model, optimizer, step, True)
    history = optimizer.state_dict()["gleaner.sparsity"]["history"]
    assert not history[:110].any(), "the momentum of model.sometimes is 0"
    assert history[110:].any()
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    for step in range(3, 6):
        take_step(model, optimizer, step, True)
        scheduler.step()
    assert optimizer.param_groups[0]["lr"] == 0.1 / 8 and same_on_all_ranks(model)


def check_other_chunks_on_another_rank_are_refused() -> None:
    model = net()
    optimizer = sparse(model, settings={"warm_up_steps": 0})
    for step in range(2):
        take_step(model, optimizer, step, True)
    if gln.rank() == 0:
        state = optimizer.state_dict()
        sparsity = {**state["gleaner.sparsity"], "important": torch.tensor([0, 1, 2, 3])}
        optimizer.load_state_dict({**state, "gleaner.sparsity": sparsity})
        optimizer.load_state_dict({**state, "gleaner.sparsity": {**sparsity, "important": torch.tensor([5, 6, 7, 8])}})
    told = raises(FailedPreconditionError, lambda: take_step(model, optimizer, 2, True))
    assert "different chunks" in told and "broadcast_optimizer_state" in told, told


def check_a_dropped_optimizer_sends_nothing() -> None:
    model = net()
    sparse(model)
    loss_of(model, gln.rank(), 0, True).backward()
    model.first.weight.grad.norm()  # no stand-in of a gradient in flight


def check_what_cannot_be_sparse_is_refused() -> None:
    def refused(kind: type[Exception], **more: Any) -> str:
        return raises(kind, lambda: sparse(net(), **more))

    assert "learn nothing" in refused(InvalidArgumentError, share=1)
    assert "from 0 to below 1" in refused(InvalidArgumentError, share=-0.1)
    assert "from 0 to below 1" in refused(InvalidArgumentError, share=math.nan)
    assert "must be a number" in refused(TypeError, share="0.5")
    assert "at least 1" in refused(InvalidArgumentError, settings={"chunk_elements": 0})
    assert "whole number" in refused(TypeError, settings={"warm_up_steps": 0.5})
    assert "from 0 to 1" in refused(InvalidArgumentError, settings={"momentum": 2})
    assert "Sparsity(share" in raises(TypeError, lambda: gln.DistributedOptimizer(momentum(net()), sparsity=0.85))
    told = refused(InvalidArgumentError, optimizer=lambda model: torch.optim.Adam(model.parameters()))
    assert "Adam has no momentum" in told and "momentum=0.9" in told, told
    told = refused(
        InvalidArgumentError, optimizer=lambda model: torch.optim.LBFGS(model.parameters()), settings={"momentum": 0.9}
    )
    assert "LBFGS" in told, told
    mixed = net()
    mixed.second.double()
    told = raises(InvalidArgumentError, lambda: sparse(mixed))
    assert "torch.float32 on cpu and torch.float64 on cpu" in told, told
    frozen = net()
    frozen.sometimes.weight.requires_grad_(False)
    optimizer = sparse(frozen)
    frozen.sometimes.weight.requires_grad_(True)
    told = raises(FailedPreconditionError, lambda: loss_of(frozen, gln.rank(), 0, True).backward())
    assert "sometimes.weight required no gradient" in told, told
    del optimizer


if __name__ == "__main__":
    torch.set_num_threads(1)
    gln.init()
    run_checks(globals())
    gln.shutdown()
