"""Checks compression and fusion that the environment chooses: GLEANER_COMPRESSION=fp16 and GLEANER_FUSION_BYTES=inf."""

from __future__ import annotations

import os
from typing import Any, Callable
from unittest import mock

import gleaner.byteps.torch as bps
import gleaner.torch as gln
import torch
from checking import raises, run_checks
from ddp_checks import distributed as with_ddp
from ddp_checks import join_both, train, twin
from fusion_checks import crossing, sent
from gleaner import InvalidArgumentError
from gleaner.byteps.torch.cross_barrier import CrossBarrier as BytePSCrossBarrier
from gleaner.byteps.torch.parallel import DistributedDataParallel
from small_training import assert_same_parameters, distributed, momentum, net, reference, take_step
from torch import nn


def assert_sent(wrap: Callable[..., torch.optim.Optimizer], tensors: int, sent_as: torch.dtype, **more: Any) -> None:
    """Asserts how many tensors each step of a training sends, and the type that they have on the network."""
    model, expected = net(), net()
    optimizer = wrap(model, **more)
    reference(expected, momentum(expected), 3, detour_rank=0, sent_as=sent_as)
    for step in range(3):
        with sent() as names:
            take_step(model, optimizer, step, detour=gln.rank() == 0)
            optimizer.synchronize()
        assert len(set(names) - {"roll"}) == tensors, names
    assert_same_parameters(model, expected)


def check_the_environment_chooses_for_every_optimizer() -> None:
    for wrap in (
        distributed,
        crossing,
        lambda model: bps.DistributedOptimizer(momentum(model), model.named_parameters()),
        lambda model: BytePSCrossBarrier(model, momentum(model)),
    ):
        assert_sent(wrap, 1, torch.float16)


def check_the_script_wins() -> None:
    for wrap in (distributed, crossing):
        assert_sent(wrap, 6, torch.float16, fusion_bytes=None)
        assert_sent(wrap, 6, torch.float32, fusion_bytes=None, compression=gln.Compression.none)
        assert_sent(wrap, 4, torch.bfloat16, fusion_bytes=450, compression=gln.Compression.bf16)


def check_the_hook_of_ddp_compresses() -> None:
    model, expected = twin(), twin()
    reference(expected, momentum(expected), 3, detour_rank=None, sent_as=torch.float16)
    train(with_ddp(model, None), model, 3)
    assert_same_parameters(model, expected)
    assert gln.DDPState("exact", gln.Compression.none).compression is gln.Compression.none


def check_the_module_of_byteps_compresses() -> None:
    model = nn.Linear(1, 1, bias=False)
    averaging = DistributedDataParallel(model)  # averages as long as it exists
    averaging(torch.full((1, 1), 1 / 3)).sum().backward()
    assert model.weight.grad.item() == torch.tensor(1 / 3).half().item()


def check_asynchronous_training_uses_neither() -> None:
    distributed(net(), asynchronous=True).synchronize()


def check_a_wrong_value_is_an_error_that_names_the_variable() -> None:
    for variable, value, expected in (
        ("GLEANER_COMPRESSION", "FP8", "none, fp16, bf16, int8"),
        ("GLEANER_FUSION_BYTES", "0", "above 0"),
        ("GLEANER_FUSION_BYTES", "-1", "above 0"),
        ("GLEANER_FUSION_BYTES", "nan", "above 0"),
        ("GLEANER_FUSION_BYTES", "1.5", "whole number"),
        ("GLEANER_FUSION_BYTES", "4Mi", "such as 4194304"),
        ("GLEANER_FUSION_BYTES", "Auto ", "such as 4194304, auto, or inf"),
    ):
        with mock.patch.dict(os.environ, {variable: value}):
            for wrap in (distributed, crossing):
                told = raises(InvalidArgumentError, lambda wrap=wrap: wrap(net()))
                assert f"{variable}='{value}'" in told and expected in told, told


def check_the_environment_has_packs_tuned() -> None:
    with mock.patch.dict(os.environ, {"GLEANER_FUSION_BYTES": "auto"}):
        for wrap in (distributed, crossing):
            assert wrap(net())._gradients.is_tuning
        distributed(net(), asynchronous=True).synchronize()
    assert not distributed(net(), fusion_bytes=None)._gradients.is_tuning


def check_empty_variables_choose_nothing() -> None:
    with mock.patch.dict(os.environ, {"GLEANER_COMPRESSION": "", "GLEANER_FUSION_BYTES": ""}):
        assert_sent(distributed, 6, torch.float32)


if __name__ == "__main__":
    join_both()
    run_checks(globals())
