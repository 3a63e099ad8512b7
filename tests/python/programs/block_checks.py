"""Checks gradients that travel in blocks, for any number of workers with one rank each."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import gleaner.torch as gln
import numpy
import torch
from checking import raises, run_checks
from gleaner import FailedPreconditionError, InvalidArgumentError
from small_training import distributed, momentum, net, same_on_all_ranks

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "docs"))
from blocks_reference import Codec, Sums

COMPRESSORS = {
    Codec("int8"): gln.Compression.int8,
    Codec("int4", seed=7): gln.Compression.dithering(seed=7),
    Codec("sign"): gln.Compression.one_bit,
    Codec("top-k", kept=8, momentum=0.5): gln.Compression.top_k(kept=8, momentum=0.5),
    Codec("random-k", kept=16): gln.Compression.random_k,
}
SHAPE = (50, 60)


def gradient_of(rank: int, step: int) -> numpy.ndarray:
    values = numpy.random.default_rng([rank, step]).standard_normal(SHAPE)
    return values.astype(numpy.float32)


def loss_of(model: torch.nn.Linear) -> torch.Tensor:
    return model(torch.ones(1, model.in_features, dtype=model.weight.dtype)).sum()


def averages(model: torch.nn.Linear, optimizer: torch.optim.Optimizer, steps: int) -> list[numpy.ndarray]:
    """Trains with gradients of gradient_of(). Returns the averages of the weight."""
    found = []
    for step in range(steps):
        optimizer.zero_grad()
        ((model.weight * torch.from_numpy(gradient_of(gln.rank(), step))).sum() + model.bias.sum()).backward()
        optimizer.synchronize()
        found.append(model.weight.grad.numpy().reshape(-1).copy())
        with optimizer.skip_synchronize():
            optimizer.step()
        assert torch.equal(model.bias.grad, torch.ones(SHAPE[0])), "smaller than a block: sent as it is"
    return found


def check_averages_have_the_bits_of_the_reference() -> None:
    for codec, compressor in COMPRESSORS.items():
        model = torch.nn.Linear(SHAPE[1], SHAPE[0])
        optimizer = distributed(model, compression=compressor, name=codec.method)
        sums = Sums(codec, f"{codec.method}.gradient.weight", gln.size(), SHAPE[0] * SHAPE[1])
        for step, average in enumerate(averages(model, optimizer, steps=4)):
            values = [gradient_of(rank, step).reshape(-1) for rank in range(gln.size())]
            expected = sums.reduced(values, average=True)
            assert numpy.array_equal(average, expected), (codec, step)
        del optimizer


def check_packs_travel_in_blocks() -> None:
    model = torch.nn.Linear(SHAPE[1], SHAPE[0])
    optimizer = distributed(model, compression=gln.Compression.int8, fusion_bytes=math.inf, name="packed")
    elements = sum(each.numel() for each in model.parameters())
    model(torch.ones(1, SHAPE[1])).sum().backward()
    plan = gln.tensor_plan(f"packed.pack.0.bias-weight.{elements}")
    assert sum(plan["partition_bytes"]) == 1028 * -(-elements // 1024), plan
    del optimizer


def check_crossing_compresses() -> None:
    model = torch.nn.Linear(SHAPE[1], SHAPE[0])
    optimizer = gln.CrossBarrier(momentum(model), model, compression=gln.Compression.top_k)
    model(torch.ones(1, SHAPE[1])).sum().backward()
    optimizer.step()
    optimizer.synchronize()
    changed = int((model.weight.grad != 0).sum())
    assert changed <= 16 * 3, changed


def check_a_second_pass_of_a_step_needs_backward_passes_per_step() -> None:
    """The second pass would send the average of the first one again."""
    for options in (
        {"compression": gln.Compression.int8},
        {"compression": gln.Compression.top_k, "fusion_bytes": math.inf},
        {"sparsity": gln.Sparsity(0.5, 0, chunk_elements=100)},
    ):
        torch.manual_seed(1)
        model = torch.nn.Linear(SHAPE[1], SHAPE[0])
        optimizer = distributed(model, **options)
        loss_of(model).backward()
        told = raises(FailedPreconditionError, lambda model=model: loss_of(model).backward())
        assert "backward_passes_per_step=" in told
        optimizer.zero_grad()
        for _ in range(2):
            loss_of(model).backward()
            torch.autograd.grad(loss_of(model), model.weight)  # adds nothing
            model.zero_grad(set_to_none=False)  # not by the optimizer
        loss_of(model).backward()
        optimizer.step()
        assert same_on_all_ranks(model)


def check_passes_add_up_where_nothing_is_encoded() -> None:
    for model, options in (
        (torch.nn.Linear(3, 2), {"compression": gln.Compression.int8}),
        (torch.nn.Linear(SHAPE[1], SHAPE[0]).double(), {"compression": gln.Compression.int8}),
        (torch.nn.Linear(3, 2), {"sparsity": gln.Sparsity(0, 0)}),
    ):
        optimizer = distributed(model, **options)
        for _ in range(2):
            loss_of(model).backward()
        optimizer.synchronize()
        assert (model.bias.grad == 2).all(), options


def check_a_nan_reaches_all_ranks() -> None:
    for compressor in COMPRESSORS.values():
        model = torch.nn.Linear(SHAPE[1], SHAPE[0])
        optimizer = distributed(model, compression=compressor)
        scale = math.nan if gln.rank() == 0 else 1.0
        (model(torch.ones(1, SHAPE[1])).sum() * scale).backward()
        optimizer.synchronize()
        assert torch.isnan(model.weight.grad).any(), compressor
        optimizer.zero_grad()
        model(torch.ones(1, SHAPE[1])).sum().backward()
        optimizer.synchronize()
        assert torch.isfinite(model.weight.grad).all(), compressor
        del optimizer


def check_wrong_options_are_refused() -> None:
    model: Any = net()
    assert "power of two" in raises(InvalidArgumentError, lambda: gln.Compression.top_k(kept=3))
    assert "omit kept" in raises(InvalidArgumentError, lambda: gln.Compression.int8(kept=8))
    assert "momentum" in raises(InvalidArgumentError, lambda: gln.Compression.int8(momentum=1.0))
    assert "seed" in raises(InvalidArgumentError, lambda: gln.Compression.random_k(seed=-1))
    for wrong in ({"share": 0.1}, {"seed": 1.5}, {"error_feedback": "no"}, {"momentum": "a"}, {"method": 5}):
        raises(TypeError, lambda wrong=wrong: gln.Compression.int8(**wrong))
    sparse = {"sparsity": gln.Sparsity(0.5, warm_up_steps=1), "compression": gln.Compression.int8}
    for wrap in (lambda: distributed(model, **sparse), lambda: gln.DDPState(**sparse)):
        assert "sparsity works with" in raises(InvalidArgumentError, wrap)


if __name__ == "__main__":
    torch.set_num_threads(1)
    gln.init()
    run_checks(globals())
    gln.shutdown()
