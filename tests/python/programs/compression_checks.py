"""Checks the compression of gradients, for any number of workers with one rank each."""

from __future__ import annotations

from typing import Any

import gleaner.torch as gln
import torch
from checking import raises, run_checks
from gleaner import InvalidArgumentError
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


class Halved:
    """Sends one vector of half the values, and counts its calls."""

    def __init__(self) -> None:
        self.compressed = self.decompressed = 0

    def compress(self, tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Size]:
        self.compressed += 1
        return tensor.reshape(-1) / 2, tensor.shape

    def decompress(self, tensor: torch.Tensor, shape: torch.Size) -> torch.Tensor:
        self.decompressed += 1
        return tensor.reshape(shape) * 2


def check_float16_has_the_bits_of_sums_of_float16() -> None:
    for more in ({}, {"wait": "step"}, {"backward_passes_per_step": 2}):
        model, expected = net(), net()
        optimizer = distributed(model, compression=gln.Compression.fp16, **more)
        passes = more.get("backward_passes_per_step", 1)
        reference(expected, momentum(expected), 3, passes, detour_rank=0, sent_as=torch.float16)
        for step in range(3):
            optimizer.zero_grad()
            for number in range(passes):
                loss_of(model, gln.rank(), step * passes + number, detour=gln.rank() == 0).backward()
            optimizer.step()
        assert_same_parameters(model, expected)


def check_bfloat16_has_the_bits_of_sums_of_bfloat16() -> None:
    for more in ({}, {"fusion_bytes": 500}):
        model, expected = net(), net()
        optimizer = distributed(model, compression=gln.Compression.bf16, **more)
        reference(expected, momentum(expected), 3, detour_rank=0, sent_as=torch.bfloat16)
        for step in range(3):
            take_step(model, optimizer, step, detour=gln.rank() == 0)
        assert_same_parameters(model, expected)


def check_gradients_are_sent_as_float16() -> None:
    model = net()
    optimizer = distributed(model, compression=gln.Compression.fp16, name="small")
    take_step(model, optimizer, 0)
    plan = gln.tensor_plan("small.gradient.first.weight")
    assert sum(plan["partition_bytes"]) == 2 * model.first.weight.numel(), plan
    assert all(each.grad.dtype is torch.float32 for each in model.first.parameters())


def check_an_overflow_is_infinite_on_all_ranks() -> None:
    model = torch.nn.Linear(4, 4)
    optimizer = distributed(model, compression=gln.Compression.fp16)
    scale = 1e6 if gln.rank() == 0 else 1.0
    (model(torch.ones(1, 4)).sum() * scale).backward()
    assert torch.isinf(model.weight.grad).all()
    del optimizer


def check_other_floating_types_become_float16() -> None:
    model = torch.nn.Linear(4, 4).double()
    optimizer = distributed(model, compression=gln.Compression.fp16)
    model(torch.full((1, 4), 1 / 3, dtype=torch.float64)).sum().backward()
    optimizer.step()
    assert model.weight.grad.dtype is torch.float64
    assert model.weight.grad.unique().tolist() == [torch.tensor(1 / 3).half().item()]


def check_crossing_compresses() -> None:
    model, expected = net(), net()
    optimizer = gln.CrossBarrier(momentum(model), model, compression=gln.Compression.fp16)
    reference(expected, momentum(expected), steps=3, detour_rank=0, sent_as=torch.float16)
    for step in range(3):
        take_step(model, optimizer, step, detour=gln.rank() == 0)
    optimizer.synchronize()
    assert_same_parameters(model, expected)


def check_ranks_that_joined_send_compressed_zeros() -> None:
    model = net()
    optimizer = distributed(model, compression=gln.Compression.fp16)
    for step in range(gln.rank() + 1):
        take_step(model, optimizer, step)
    gln.join()
    assert same_on_all_ranks(model)
    del optimizer


def check_a_program_brings_its_own_compressor() -> None:
    model, expected, halved = net(), net(), Halved()
    optimizer = distributed(model, compression=halved)
    parameters = len(list(model.parameters()))
    assert halved.compressed == parameters, "the constructor learns the sizes"
    reference(expected, momentum(expected), steps=2, detour_rank=0)
    for step in range(2):
        take_step(model, optimizer, step, detour=gln.rank() == 0)
    assert_same_parameters(model, expected)
    assert (halved.compressed, halved.decompressed) == (3 * parameters, 2 * parameters)


def check_wrong_compressors_are_refused() -> None:
    model: Any = net()
    for wrong in ("fp16", None, torch.float16):
        told = raises(TypeError, lambda wrong=wrong: distributed(model, compression=wrong))
        assert "Compression.fp16" in told and repr(wrong) in told, told
        raises(TypeError, lambda wrong=wrong: gln.CrossBarrier(momentum(model), model, compression=wrong))
    told = raises(InvalidArgumentError, lambda: distributed(model, asynchronous=True, compression=gln.Compression.fp16))
    assert "asynchronous=True" in told, told


if __name__ == "__main__":
    torch.set_num_threads(1)
    gln.init()
    run_checks(globals())
    gln.shutdown()
