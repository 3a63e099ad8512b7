"""Checks training on a device: parameters have the bits of a training in one process, which computes each rank's
gradients on the same device and adds them in rank order."""

from __future__ import annotations

import io
from typing import Any

import gleaner.torch as gln
import ranks
import torch
import torch.distributed
from small_training import equal
from torch import nn
from torch.nn import functional

STEPS = 4


def device() -> torch.device:
    return ranks.device_of(gln.local_rank())


class Images(nn.Module):
    """A small network with convolutions, normalization and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.normal = nn.GroupNorm(2, 8)
        self.second = nn.Conv2d(8, 16, 3, padding=1)
        self.last = nn.Linear(16 * 4 * 4, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        out = functional.relu(self.normal(self.first(images)))
        out = functional.relu(self.second(out))
        return self.last(functional.max_pool2d(out, 2).flatten(1))


def model_of(seed: int = 1) -> nn.Module:
    torch.manual_seed(seed)
    return Images().to(device())


def momentum(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def loss_of(model: nn.Module, rank: int, step: int, layout: torch.memory_format = torch.contiguous_format) -> Any:
    generator = torch.Generator().manual_seed(1000 * step + rank)
    images = torch.randn(6, 3, 8, 8, generator=generator).to(device(), memory_format=layout)
    labels = torch.randint(10, (6,), generator=generator).to(device())
    return functional.cross_entropy(model(images), labels)


def gradients(model: nn.Module, rank: int, passes: list[int]) -> list[torch.Tensor]:
    model.zero_grad(set_to_none=True)
    for number in passes:
        loss_of(model, rank, number).backward()
    return [parameter.grad.cpu() for parameter in model.parameters()]


def train_alone(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int = STEPS, passes: int = 1) -> nn.Module:
    """Trains in this process as all ranks do together."""
    for step in range(steps):
        numbers = list(range(step * passes, (step + 1) * passes))
        everyones = [gradients(model, rank, numbers) for rank in range(gln.size())]
        for parameter, *parts in zip(model.parameters(), *everyones):
            parameter.grad = ranks.sum_of(parts, gln.size()).to(device())
        optimizer.step()
    return model


def train(model: nn.Module, optimizer: Any, steps: int = STEPS) -> nn.Module:
    for step in range(steps):
        optimizer.zero_grad()
        loss_of(model, gln.rank(), step).backward()
        optimizer.step()
    return model


def distributed(model: nn.Module, **more: Any) -> Any:
    return gln.DistributedOptimizer(momentum(model), model.named_parameters(), **more)


def expected() -> nn.Module:
    model = model_of()
    return train_alone(model, momentum(model))


def assert_same(ours: nn.Module, theirs: nn.Module) -> None:
    for (name, one), other in zip(ours.named_parameters(), theirs.parameters()):
        assert equal(one, other), f"{name}: {(one != other).sum().item()} of {one.numel()} elements differ"


def assert_same_on_all_ranks(model: nn.Module, name: str) -> None:
    ours = torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()]).cpu()
    assert equal(gln.broadcast(ours, root_rank=0), ours), f"{name}: parameters differ between ranks"


def check_distributed_optimizer() -> None:
    model = model_of()
    assert_same(train(model, distributed(model)), expected())


def check_adam() -> None:
    model, alone = model_of(), model_of()
    optimizer = gln.DistributedOptimizer(torch.optim.Adam(model.parameters(), lr=0.01), model.named_parameters())
    train_alone(alone, torch.optim.Adam(alone.parameters(), lr=0.01))
    assert_same(train(model, optimizer), alone)


def check_wait_in_step() -> None:
    model = model_of()
    assert_same(train(model, distributed(model, wait="step")), expected())


def check_cross_barrier() -> None:
    model = model_of()
    optimizer = gln.CrossBarrier(momentum(model), model)
    train(model, optimizer)
    optimizer.synchronize()
    assert_same(model, expected())


def check_gradient_accumulation() -> None:
    model, alone = model_of(), model_of()
    optimizer = distributed(model, backward_passes_per_step=2)
    train_alone(alone, momentum(alone), passes=2)
    for step in range(STEPS):
        optimizer.zero_grad()
        for number in range(2):
            loss_of(model, gln.rank(), 2 * step + number).backward()
        optimizer.step()
    assert_same(model, alone)


def check_several_models() -> None:
    model, other = model_of(), model_of(2)
    optimizer, others = distributed(model), distributed(other)
    for step in range(STEPS):
        optimizer.zero_grad()
        others.zero_grad()
        loss_of(model, gln.rank(), step).backward()
        loss_of(other, gln.rank(), step).backward()
        optimizer.step()
        others.step()
    assert_same(model, expected())
    alone = model_of(2)
    assert_same(other, train_alone(alone, momentum(alone)))


def check_channels_last() -> None:
    model = model_of().to(memory_format=torch.channels_last)
    optimizer = distributed(model)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss_of(model, gln.rank(), step, torch.channels_last).backward()
        optimizer.step()
    assert_same_on_all_ranks(model, "channels_last")
    for one, other in zip(model.parameters(), expected().parameters()):
        assert torch.allclose(one, other, rtol=0.05, atol=0.01), (one - other).abs().max()


def check_ddp_hook() -> None:
    with process_group("ddp"):
        model = model_of()
        wrapped = nn.parallel.DistributedDataParallel(model)
        wrapped.register_comm_hook(None, gln.ddp_hook)
        train(wrapped, momentum(model))
        assert_same(model, expected())


class process_group:  # reads as a function
    """Is a Gloo process group of all ranks, which meet in a file."""

    def __init__(self, name: str) -> None:
        self._meeting = f"file://{ranks.ARGUMENTS.results.resolve()}/meeting-{name}"

    def __enter__(self) -> None:
        torch.distributed.init_process_group("gloo", init_method=self._meeting, rank=gln.rank(), world_size=gln.size())

    def __exit__(self, *_: object) -> None:
        torch.distributed.destroy_process_group()


def scaler_of(**more: Any) -> Any:
    if hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler(device().type, **more)
    if device().type == "cpu":
        raise ranks.Skip("this PyTorch has no GradScaler for CPUs")
    return torch.cuda.amp.GradScaler(**more)


def check_amp_grad_scaler() -> str:
    model = model_of()
    optimizer = distributed(model)
    scaler = scaler_of(init_scale=2.0**10)
    kind = torch.float16 if device().type == "cuda" else torch.bfloat16
    for step in range(STEPS):
        optimizer.zero_grad()
        with torch.autocast(device().type, dtype=kind):
            loss = loss_of(model, gln.rank(), step)
        if step == 1 and gln.rank() == 0:
            loss = loss * float("inf")
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    assert scaler.get_scale() == 2.0**9, f"one rank's infinity gives a scale of {scaler.get_scale()}"
    assert all(bool(parameter.isfinite().all()) for parameter in model.parameters())
    assert_same_on_all_ranks(model, "amp")
    return f"{kind}, and an infinity on one rank makes all ranks skip the step"


def check_half_model() -> None:
    kind = torch.bfloat16
    model = model_of().to(kind)
    optimizer = distributed(model)
    for step in range(STEPS):
        optimizer.zero_grad()
        images = torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(step + gln.rank()))
        model(images.to(device(), kind)).float().square().mean().backward()
        optimizer.step()
    assert_same_on_all_ranks(model, "bfloat16")


def check_checkpoint() -> None:
    model = model_of()
    optimizer = distributed(model)
    train(model, optimizer, steps=2)
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    saved = torch.load(file, map_location=device())
    resumed = model_of(5)
    resumed.load_state_dict(saved["model"])
    plain = momentum(resumed)
    plain.load_state_dict(saved["optimizer"])
    optimizer = gln.DistributedOptimizer(plain, resumed.named_parameters())
    for step in (2, 3):
        optimizer.zero_grad()
        loss_of(resumed, gln.rank(), step).backward()
        optimizer.step()
    assert_same(resumed, expected())


def check_asynchronous() -> None:
    model = model_of()
    optimizer = distributed(model, asynchronous=True, staleness=2)
    train(model, optimizer)
    optimizer.synchronize()
    assert_same_on_all_ranks(model, "asynchronous")


def check_training_on_a_side_stream() -> None:
    ranks.needs_cuda()
    model = model_of()
    optimizer = distributed(model)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        train(model, optimizer)
    torch.cuda.current_stream().wait_stream(stream)
    assert_same(model, expected())


def check_join() -> None:
    model = model_of()
    optimizer = distributed(model)
    train(model, optimizer, steps=2 + gln.rank() % 2)
    gln.join()
    assert_same_on_all_ranks(model, "join")


if __name__ == "__main__":
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    ranks.run(globals())
