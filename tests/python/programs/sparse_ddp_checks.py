"""Checks DistributedDataParallel whose hook sends important chunks alone, in a Gloo process group on loopback."""

from __future__ import annotations

import copy
import math
from typing import Any
from unittest import mock

import gleaner.torch as gln
import torch
import torch.distributed
from checking import raises, run_checks
from ddp_checks import assert_same_on_both_ranks, distributed, join_both, twin
from fusion_checks import sent
from gleaner import FailedPreconditionError, InvalidArgumentError
from small_training import assert_same_parameters, equal, loss_of, momentum, same_on_all_ranks, take_step
from sparsity_checks import CHUNK, WARM_UP, Reference
from torch import nn


def sparse(name: str, share: float = 0.7, **more: Any) -> gln.DDPState:
    settings = {"warm_up_steps": WARM_UP, "chunk_elements": CHUNK, "momentum": 0.9, **more.pop("settings", {})}
    return gln.DDPState(name, sparsity=gln.Sparsity(share, **settings), **more)


def in_small_buckets(model: nn.Module, state: gln.DDPState, hook: Any = gln.ddp_hook) -> nn.Module:
    """Returns a model whose small gradients have several buckets. DDP's first one otherwise has at least 1 MiB."""
    with mock.patch.object(torch.distributed, "_DEFAULT_FIRST_BUCKET_BYTES", 1):
        wrapped = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.001)
    wrapped.register_comm_hook(state, hook)
    return wrapped


class DenseUpdates(Reference):
    """The steps of all ranks in one process, with an optimizer that steps for all parameters."""

    def update(self, averages: torch.Tensor) -> None:
        if self.step == 0:
            self.optimizer = momentum(self.model)
        sizes = [each.numel() for each in self.parameters]
        for parameter, average in zip(self.parameters, averages[: sum(sizes)].split(sizes)):
            parameter.grad = average.view_as(parameter).clone()
        self.optimizer.step()


def check_equals_the_algorithm_of_the_paper() -> None:
    for name, wrap, more in (
        ("one", distributed, {}),
        ("several", in_small_buckets, {}),
        ("narrow", in_small_buckets, {"compression": gln.Compression.fp16}),
    ):
        model, expected = twin(), twin()
        wrapped, optimizer = wrap(model, sparse(name, **more)), momentum(model)
        reference = DenseUpdates(expected, 0.7, torch.float16 if more else torch.float32)
        for step in range(10):
            take_step(wrapped, optimizer, step)
            reference.take_step(lambda rank, step, expected=expected: loss_of(expected, rank, step))
            for ours, theirs in zip(model.parameters(), expected.parameters()):
                assert torch.allclose(ours, theirs, rtol=1e-5, atol=1e-5 if more else 1e-7), (name, step)
        flat = torch.cat([each.grad.reshape(-1) for each in reversed(list(model.parameters()))])
        assert sum(bool(each.any()) for each in flat.split(CHUNK)) == 4
        assert same_on_all_ranks(model)


def check_packets_leave_during_the_backward_pass() -> None:
    torch.manual_seed(1)
    model = nn.Sequential(*(nn.Linear(1000, 1000) for _ in range(3)))  # 12 MB, and packets have at most 4 MiB
    sent_before: list[int] = []  # by bucket: number of tensors

    def hook(state, bucket):
        future = gln.ddp_hook(state, bucket)
        sent_before.append(len(names))
        return future

    state = sparse("early", settings={"chunk_elements": 32_000})
    wrapped, optimizer = in_small_buckets(model, state, hook), momentum(model)
    for _ in range(3):
        del sent_before[:]
        with sent() as names:
            optimizer.zero_grad()
            wrapped(torch.ones(2, 1000)).sum().backward()
            optimizer.step()
    assert any("packet" in each for each in names[: sent_before[-2]]), (sent_before, names)
    assert same_on_all_ranks(model)


def check_a_nan_of_one_rank_reaches_all() -> None:
    model, state = twin(), sparse("nan", settings={"warm_up_steps": 0})
    wrapped, optimizer = in_small_buckets(model, state), momentum(model)
    for step in range(3):
        take_step(wrapped, optimizer, step)
    before = copy.deepcopy(state.state_dict()["gleaner.sparsity"])
    optimizer.zero_grad()
    (loss_of(wrapped, gln.rank(), 3) * (math.nan if gln.rank() == 1 else 1)).backward()
    assert all(each.grad.isnan().any() for each in model.parameters()), "GradScaler skips the step on all ranks"
    after = state.state_dict()["gleaner.sparsity"]
    assert after["step"] == before["step"] and equal(after["history"], before["history"])
    take_step(wrapped, optimizer, 3)
    assert all(each.isfinite().all() for each in model.parameters()) and same_on_all_ranks(model)


def check_a_loaded_state_goes_on_with_the_same_bits() -> None:
    model, state = twin(), sparse("saved")
    wrapped, optimizer = distributed(model, state), momentum(model)
    assert state.state_dict() == {}
    for step in range(3):
        take_step(wrapped, optimizer, step)
    saved = copy.deepcopy([each.state_dict() for each in (state, model, optimizer)])
    for step in range(3, 8):
        take_step(wrapped, optimizer, step)
    again, other = twin(), sparse("loaded")
    resumed, optimizer = in_small_buckets(again, other), momentum(again)
    for each, its in zip((other, again, optimizer), saved):
        each.load_state_dict(its)
    assert other.state_dict() == saved[0]
    for step in range(3, 8):
        take_step(resumed, optimizer, step)
    assert_same_parameters(again, model)
    told = raises(InvalidArgumentError, lambda: gln.DDPState("dense").load_state_dict(saved[0]))
    assert "has none: pass the same Sparsity" in told, told
    cut = sparse("cut", settings={"chunk_elements": 50})
    cut.load_state_dict(saved[0])
    wrapped = distributed(twin(), cut)
    told = raises(InvalidArgumentError, loss_of(wrapped, gln.rank(), 0).backward)
    assert "11 chunks of 100 elements" in told and "21 of 50" in told, told


def check_other_chunks_on_another_rank_are_refused() -> None:
    model, state = twin(), sparse("chosen", settings={"warm_up_steps": 0})
    wrapped, optimizer = distributed(model, state), momentum(model)
    for step in range(2):
        take_step(wrapped, optimizer, step)
    if gln.rank() == 0:
        ours = state.state_dict()["gleaner.sparsity"]
        state.load_state_dict({"gleaner.sparsity": {**ours, "important": (ours["important"] + 1) % 11}})
    told = raises(FailedPreconditionError, loss_of(wrapped, gln.rank(), 2).backward)
    assert "different chunks" in told, told


def check_join_serves_uneven_inputs() -> None:
    model = twin()
    wrapped, optimizer = distributed(model, sparse("uneven", settings={"warm_up_steps": 0})), momentum(model)
    with wrapped.join():
        for step in range(2 + gln.rank()):
            optimizer.zero_grad()
            loss_of(wrapped, gln.rank(), step).backward()
            optimizer.step()
    assert_same_on_both_ranks([parameter.detach() for parameter in model.parameters()])


def check_a_state_serves_one_model() -> None:
    state = sparse("one.model")
    one, other = distributed(twin(), state), distributed(twin(), state)
    loss_of(one, gln.rank(), 0).backward()
    told = raises(FailedPreconditionError, loss_of(other, gln.rank(), 0).backward)
    assert "make a DDPState for each" in told, told
    loss_of(one, gln.rank(), 1).backward()


def check_bad_settings_are_refused() -> None:
    assert "momentum=0.9" in raises(InvalidArgumentError, lambda: sparse("x", settings={"momentum": None}))
    assert "Sparsity(share" in raises(TypeError, lambda: gln.DDPState(sparsity=0.85))
    mixed = twin()
    mixed.second.double()
    mixed.forward = lambda data: mixed.sometimes(mixed.second(mixed.first(data).double()).float())
    wrapped = distributed(mixed, sparse("mixed"))
    told = raises(InvalidArgumentError, wrapped(torch.ones(1, 20)).sum().backward)
    assert "torch.float32 on cpu and torch.float64 on cpu" in told, told


if __name__ == "__main__":
    join_both()
    run_checks(globals())
