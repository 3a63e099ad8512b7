"""Checks packs that the first steps decide: the order of gradients, and the threshold with fusion_bytes="auto".

For any number of workers with one rank each, at least two.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Optional
from unittest import mock

import gleaner.torch as gln
import torch
from checking import raises, run_checks
from fusion_checks import crossing, sent
from gleaner.torch import pack_tuning
from gleaner.torch.fusion_model import Choice
from small_training import (
    assert_same_parameters,
    distributed,
    loss_of,
    momentum,
    net,
    reference,
    same_on_all_ranks,
    take_step,
)
from torch import nn

STEPS = 6  # "auto" decides after the third


class Many(nn.Module):
    """A network of many small layers, which are named in the order opposite to that of the forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(20, 20) for _ in range(40))

    def forward(self, data: torch.Tensor, detour: bool = False) -> torch.Tensor:
        for layer in reversed(self.layers):
            data = torch.tanh(layer(data))
        return data


def many() -> Many:
    torch.manual_seed(1)
    return Many()


@contextmanager
def choosing(fusion_bytes: Optional[float]) -> Iterator[None]:
    """Has rank 0 choose this threshold, and other ranks another one."""
    mine = fusion_bytes if gln.rank() == 0 else 10.0 * gln.rank()
    with mock.patch.object(pack_tuning, "choose", lambda *_: Choice(mine, 1, 2)):
        yield


def fusion_of(optimizer: torch.optim.Optimizer) -> Any:
    return optimizer._gradients._packing.fusion


def check_all_ranks_choose_the_same_threshold() -> None:
    for wrap in (distributed, crossing):
        model, expected = many(), many()
        optimizer = wrap(model, fusion_bytes="auto")
        reference(expected, momentum(expected), STEPS)
        for step in range(STEPS):
            assert optimizer._gradients.is_tuning == (step < 3)
            take_step(model, optimizer, step)
        optimizer.synchronize()
        assert_same_parameters(model, expected)
        fusion = fusion_of(optimizer)
        assert gln.broadcast_object((fusion.fusion_bytes, fusion.packs)) == (fusion.fusion_bytes, fusion.packs)
        assert fusion.fusion_bytes >= 0, fusion


def check_ranks_follow_rank_0() -> None:
    for fusion_bytes, packs in ((None, 0), (500.0, 1), (1300.0, 1), (math.inf, 1)):
        for wrap, more in (
            (distributed, {}),
            (distributed, {"wait": "step"}),
            (distributed, {"prioritize": False}),
            (distributed, {"backward_passes_per_step": 2}),
            (crossing, {}),
        ):
            for set_to_none in (True, False):
                model, expected = net(), net()
                passes = more.get("backward_passes_per_step", 1)
                with choosing(fusion_bytes):
                    optimizer = wrap(model, fusion_bytes="auto", **more)
                    reference(expected, momentum(expected), STEPS, passes, detour_rank=0)
                    for step in range(STEPS):
                        optimizer.zero_grad(set_to_none=set_to_none)
                        for number in range(passes):
                            loss_of(model, gln.rank(), step * passes + number, detour=gln.rank() == 0).backward()
                        optimizer.step()
                optimizer.synchronize()
                assert_same_parameters(model, expected)
                assert fusion_of(optimizer).fusion_bytes == (fusion_bytes or 0)
                assert len(fusion_of(optimizer).packs) == packs, fusion_of(optimizer)


def check_auto_sends_single_gradients_first() -> None:
    model = net()
    optimizer = distributed(model, fusion_bytes="auto")
    with choosing(math.inf), sent() as names:
        for step in range(3):
            take_step(model, optimizer, step, detour=True)
            assert not any(name.startswith("pack") for name in names), names
        names.clear()
        take_step(model, optimizer, 3, detour=True)
    assert sorted(names) == ["pack.0.sometimes.bias-first.weight", "roll"], names


def check_packs_follow_the_order_of_gradients() -> None:
    model, expected = many(), many()
    optimizer = distributed(model, fusion_bytes=5000)  # packs of three layers
    reference(expected, momentum(expected), 3)
    packs = []
    for step in range(3):
        with sent() as names:
            take_step(model, optimizer, step)
        packs.append([name for name in names if name.startswith("pack")])
    assert "pack.0.layers.39.bias-layers.37.weight" in packs[0], packs
    assert packs[1] == packs[2] and packs[1][0] == "pack.14.layers.0.bias-layers.2.weight", packs
    assert_same_parameters(model, expected)


def check_ranks_follow_the_order_of_rank_0() -> None:
    for fusion_bytes in (500, "auto"):
        model = net()
        optimizer = distributed(model, fusion_bytes=fusion_bytes)
        with choosing(500.0):
            for step in range(4):
                with sent() as names:  # only rank 0 lacks the gradients of `sometimes`, which other ranks make first
                    take_step(model, optimizer, step, detour=gln.rank() > 0)
        assert any(name.endswith(".second.bias-sometimes.weight") for name in names), names
        assert same_on_all_ranks(model)


def check_a_rank_that_has_joined_delays_the_choice() -> None:
    model = net()
    optimizer = distributed(model, fusion_bytes="auto")
    for step in range(1 if gln.rank() == 0 else 4):
        take_step(model, optimizer, step)
    gln.join()
    assert optimizer._gradients.is_tuning
    take_step(model, optimizer, 0)
    assert not optimizer._gradients.is_tuning and same_on_all_ranks(model)
    del optimizer


def check_the_state_has_nothing_of_packs() -> None:
    model = net()
    optimizer, plain = distributed(model, fusion_bytes="auto"), momentum(model)
    for step in range(4):
        take_step(model, optimizer, step)
    plain.load_state_dict(optimizer.state_dict())
    assert optimizer.state_dict().keys() == plain.state_dict().keys()


def check_rank_0_logs_its_reasons() -> None:
    model = net()
    optimizer = distributed(model, fusion_bytes="auto", name="explained")
    with mock.patch.object(logging.getLogger("gleaner.torch"), "info") as info:
        for step in range(3):
            take_step(model, optimizer, step)
    lines = [call.args[0] % call.args[1:] for call in info.call_args_list]
    assert len(lines) == (gln.rank() == 0), lines
    for line in lines:
        assert line.startswith("explained: auto chooses ") and "without packs" in line and "a message takes" in line


def check_sparse_gradients_know_no_auto() -> None:
    model = net()
    optimizer = distributed(model, fusion_bytes="auto", sparsity=gln.Sparsity(0, 0))
    take_step(model, optimizer, 0)
    assert same_on_all_ranks(model) and not optimizer._gradients.is_tuning


def check_misspelt_words_are_refused() -> None:
    for value in ("Auto", "auto ", "AUTO", ""):
        for wrap in (distributed, crossing):
            message = raises(TypeError, lambda wrap=wrap, value=value: wrap(net(), fusion_bytes=value))
            assert repr(value) in message and "'auto'" in message, message


if __name__ == "__main__":
    torch.set_num_threads(1)
    gln.init()
    run_checks(globals())
    gln.shutdown()
