"""Checks CrossBarrier with coarse-grained sparse communication, for any number of workers with one rank each.

sparsity_checks.py compares DistributedOptimizer with the algorithm of the paper. CrossBarrier has to have its bits.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import gleaner.torch as gln
import torch
from checking import raises, run_checks
from gleaner import InvalidArgumentError
from gleaner.session import Session
from lars_checks import lars
from small_training import assert_same_parameters, equal, inputs, loss_of, momentum, net, same_on_all_ranks, take_step
from sparsity_checks import CHUNK, sparse
from torch import nn

Wrapped = Callable[[nn.Module], torch.optim.Optimizer]


def crossing(model: nn.Module, share: float = 0.7, **more: Any) -> torch.optim.Optimizer:
    settings = {"warm_up_steps": 4, "chunk_elements": CHUNK, **more.pop("settings", {})}
    optimizer: Wrapped = more.pop("optimizer", momentum)
    return gln.CrossBarrier(optimizer(model), model, sparsity=gln.Sparsity(share, **settings), **more)


def adam(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=0.01)


def detours(step: int) -> bool:
    """Returns whether this rank uses model.sometimes: in some steps all ranks do, in some one rank, in some none."""
    return (True, gln.rank() == 0, False)[step % 3]


def assert_same_state(optimizer: torch.optim.Optimizer, expected: torch.optim.Optimizer) -> None:
    ours, theirs = (each.state_dict()["gleaner.sparsity"] for each in (optimizer, expected))
    assert ours["step"] == theirs["step"] and ours["important"].tolist() == theirs["important"].tolist()
    assert equal(ours["history"], theirs["history"])


def check_it_has_the_bits_of_distributed_optimizer() -> None:
    for more in (
        {},
        {"fusion_bytes": 1},
        {"fusion_bytes": 2 * CHUNK * 4},
        {"fusion_bytes": math.inf, "prioritize": False},
        {"compression": gln.Compression.fp16},
        {"backward_passes_per_step": 2},
        {"optimizer": lars},
        {"optimizer": adam, "settings": {"momentum": 0.5, "warm_up_steps": 0}},
    ):
        for set_to_none in (True, False):
            model, expected = net(), net()
            optimizer, usual = crossing(model, **more), sparse(expected, **more)
            for step in range(10):
                for each, optimizes in ((model, optimizer), (expected, usual)):
                    optimizes.zero_grad(set_to_none=set_to_none)
                    for number in range(more.get("backward_passes_per_step", 1)):
                        loss_of(each, gln.rank(), 2 * step + number, detours(step)).backward()
                    optimizes.step()
                if step == 6:
                    assert_same_state(optimizer, usual)
            optimizer.synchronize()
            assert_same_parameters(model, expected)
            assert_same_state(optimizer, usual)
            assert same_on_all_ranks(model)
            del optimizer, usual


@contextmanager
def awaited() -> Iterator[list[str]]:
    """Records the names of the tensors that this rank waits for, without the name of their optimizer."""
    names: list[str] = []
    started: dict[int, str] = {}
    push_pull, synchronize = Session.push_pull_async, Session.synchronize

    def start(session: Session, tensor: int, source: int, output: int, op: Any, name: str, *rest: Any) -> int:
        handle = push_pull(session, tensor, source, output, op, name, *rest)
        started[handle] = name.split(".", 2)[-1]
        return handle

    def wait(session: Session, handle: int) -> Any:
        names.append(started[handle])
        return synchronize(session, handle)

    with mock.patch.multiple(Session, push_pull_async=start, synchronize=wait):
        yield names


def check_a_module_waits_for_its_own_packets() -> None:
    model = net()
    optimizer = crossing(model, settings={"warm_up_steps": 0}, fusion_bytes=1)
    for step in range(3):
        take_step(model, optimizer, step, True)
    optimizer.synchronize()
    important = optimizer.state_dict()["gleaner.sparsity"]["important"].tolist()
    assert len(important) == 4
    # In the order of backward(), model.sometimes has elements 0 to 109, model.second 110 to 419, model.first the rest.
    of_module = {"sometimes": range(2), "second": range(1, 5), "first": range(4, 11)}
    with awaited() as names:
        take_step(model, optimizer, 3, True)
        assert names == [], "step() waits for nothing if this rank has all gradients"
        seen = set()
        for name, layer in (("first", model.first), ("second", model.second), ("sometimes", model.sometimes)):
            del names[:]
            layer(torch.ones(1, layer.in_features))
            own = {number for number, chunk in enumerate(important) if chunk in of_module[name]}
            packets = {f"packet.{number}.1x{CHUNK}" for number in own - seen}
            assert {each for each in names if each.startswith("packet")} == packets, (name, names, packets)
            assert {"roll", f"norms.{11}"} & set(names) == ({"roll", f"norms.{11}"} if not seen else set()), names
            seen |= own
    optimizer.synchronize()
    assert same_on_all_ranks(model)


def check_no_rank_waits_for_the_next_step_of_another() -> None:
    model = net()
    optimizer = crossing(model)
    for step in range(3):
        take_step(model, optimizer, step, detours(step + 1))
    if gln.rank() == 0:
        assert optimizer.state_dict()["gleaner.sparsity"]["step"] == 3
    gln.push_pull(torch.ones(1), name="after.state")  # where the other ranks wait meanwhile
    optimizer.synchronize()
    assert same_on_all_ranks(model)


def priorities_in_a_step(**more: Any) -> dict[str, int]:
    """Returns the priorities of the tensors that the first step sends."""
    model = net()
    optimizer = crossing(model, fusion_bytes=2 * CHUNK * 4, **more)
    priorities: dict[str, int] = {}
    declare = Session.declare

    def note(session: Session, name: str, *rest: Any, **more: Any) -> int:
        priorities[name.split(".", 2)[-1]] = rest[2]
        return declare(session, name, *rest, **more)

    with mock.patch.object(Session, "declare", note):
        take_step(model, optimizer, 0, True)
    optimizer.synchronize()
    return priorities


def check_urgent_packets_have_lower_priorities() -> None:
    names = ["norms.11", *(f"packet.{number}.2x100" for number in range(5)), "packet.1x100"]
    for prioritize, expected in ((True, [-1, 5, 4, 3, 2, 1, 0]), (False, [-1, *[0] * 6])):
        priorities = priorities_in_a_step(prioritize=prioritize)
        assert [priorities[name] for name in names] == expected, priorities


def check_a_nan_of_one_rank_reaches_all() -> None:
    model, expected = net(), net()
    optimizer, usual = (each(of, settings={"warm_up_steps": 0}) for each, of in ((crossing, model), (sparse, expected)))
    for step in range(3):
        take_step(model, optimizer, step, True)
        take_step(expected, usual, step, True)
    before = copy.deepcopy(optimizer.state_dict()["gleaner.sparsity"])

    def spoil(each: nn.Module, optimizes: torch.optim.Optimizer) -> None:
        optimizes.zero_grad()
        hidden = each.first(inputs(gln.rank(), 3))
        loss = each.second(hidden.detach()).mean() * (math.nan if gln.rank() == 1 else 1)
        (loss + hidden.mean()).backward()  # only the gradients of each.second are NaN

    spoil(model, optimizer)
    optimizer.synchronize()  # as before GradScaler, which then skips the step
    assert model.second.weight.grad.isnan().any()
    after = optimizer.state_dict()["gleaner.sparsity"]
    assert after["step"] == before["step"] and equal(after["history"], before["history"])
    for each, optimizes in ((model, optimizer), (expected, usual)):
        take_step(each, optimizes, 3, True)
        optimizes.synchronize()
    assert_same_parameters(model, expected)
    for each, optimizes in ((model, optimizer), (expected, usual)):
        spoil(each, optimizes)
        optimizes.step()
        each.second(torch.ones(1, 30))  # waits for none of the packets of each.first
        optimizes.synchronize()
    for ours, theirs in zip(model.parameters(), expected.parameters()):
        assert torch.equal(ours.isnan(), theirs.isnan())
    assert model.second.weight.isnan().any()


def check_a_state_goes_on_with_either_wrapper() -> None:
    model = net()
    optimizer = crossing(model)
    for step in range(3):
        take_step(model, optimizer, step, detours(step))
    saved = copy.deepcopy((optimizer.state_dict(), model.state_dict()))
    for step in range(3, 8):
        take_step(model, optimizer, step, detours(step))
    optimizer.synchronize()
    for wrap in (crossing, sparse):
        again = net(seed=2)
        restarted = wrap(again)
        again.load_state_dict(saved[1])
        restarted.load_state_dict(copy.deepcopy(saved[0]))
        for step in range(3, 8):
            take_step(again, restarted, step, detours(step))
        restarted.synchronize()
        assert_same_parameters(again, model)
        del restarted


def check_bad_settings_are_refused() -> None:
    told = raises(TypeError, lambda: gln.CrossBarrier(momentum(net()), net(), sparsity=0.85))
    assert "Sparsity(share" in told, told
    told = raises(InvalidArgumentError, lambda: crossing(net(), optimizer=adam))
    assert "momentum=0.9" in told, told


if __name__ == "__main__":
    torch.set_num_threads(1)
    gln.init()
    run_checks(globals())
    gln.shutdown()
