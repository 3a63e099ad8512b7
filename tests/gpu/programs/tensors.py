"""Checks sums, averages and broadcasts of tensors on a device: each result has the bits that CPU tensors give."""

from __future__ import annotations

from collections.abc import Iterator

import gleaner.torch as gln
import ranks
import torch
from checking import raises
from small_training import bits, equal, everybodys

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
SIZES = (1, 1000, 300_001)


def here(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a copy on the device."""
    return tensor.to(ranks.device_of(gln.local_rank()), copy=True)


def mine(elements: int, kind: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    """Returns this rank's contribution, on the device."""
    return here(everybodys(elements, kind, seed)[gln.rank()])


def same(result: torch.Tensor, expected: torch.Tensor, what: str = "result") -> None:
    """Asserts that `result` is on the device and has the bits of `expected`, which is in host memory."""
    assert result.device == here(torch.empty(0)).device, f"{what} is on {result.device}"
    assert equal(result.cpu(), expected), f"{what} has other bits: {result.cpu()}, expected {expected}"


def sums(kind: torch.dtype) -> None:
    for size in SIZES:
        parts = everybodys(size, kind, seed=size)
        tensor = here(parts[gln.rank()])
        same(gln.push_pull(tensor, False, f"sum.{kind}.{size}"), ranks.sum_of(parts), f"sum of {size}")
        if kind.is_floating_point:
            same(gln.push_pull(tensor, name=f"mean.{kind}.{size}"), ranks.sum_of(parts, gln.size()), f"mean of {size}")
        assert equal(tensor.cpu(), parts[gln.rank()]), "the input changed"


def check_float32() -> None:
    sums(torch.float32)


def check_float64() -> None:
    sums(torch.float64)


def check_float16() -> None:
    sums(torch.float16)


def check_bfloat16() -> None:
    sums(torch.bfloat16)


def check_int32() -> None:
    sums(torch.int32)


def check_same_bits_as_cpu_tensors() -> None:
    for kind in FLOATS:
        part = everybodys(100_003, kind, seed=9)[gln.rank()]
        on_host = gln.push_pull(part, name=f"host.{kind}")
        same(gln.push_pull(here(part), name=f"device.{kind}"), on_host, str(kind))


def check_int64_is_refused() -> None:
    assert "torch.int64" in raises(TypeError, lambda: gln.push_pull(here(torch.ones(2, dtype=torch.int64))))


def check_sparse_is_refused() -> None:
    assert "dense" in raises(TypeError, lambda: gln.push_pull(here(torch.eye(3)).to_sparse()))


def check_nan_and_infinity() -> None:
    patterns = [0x7FC00000, -0x400000, 0x7F800001, 0x7F800000, -0x800000, -0x80000000, 1, 0x7F7FFFFF]
    special = torch.tensor(patterns, dtype=torch.int32).view(torch.float32)
    for kind in FLOATS:
        part = special.to(kind) if gln.rank() == 0 else torch.zeros(len(special), dtype=kind)
        on_host = gln.push_pull(part, False, name=f"special.host.{kind}")
        same(gln.push_pull(here(part), False, name=f"special.device.{kind}"), on_host, str(kind))


def check_in_place() -> None:
    parts = everybodys(50_000)
    tensor = here(parts[gln.rank()])
    address = tensor.data_ptr()
    assert gln.push_pull_inplace(tensor, name="in place") is tensor
    assert tensor.data_ptr() == address
    same(tensor, ranks.sum_of(parts, gln.size()))


def views(whole: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
    """Yields views of a tensor of 8 x 6 x 10 x 4 elements that are not contiguous."""
    yield "transposed", whole.flatten(1).t()
    yield "every second", whole.reshape(-1)[::2]
    yield "slice", whole[:, 1:3]
    yield "channels last", whole.contiguous(memory_format=torch.channels_last)
    yield "expanded", whole[:1].expand(5, -1, -1, -1)


def check_not_contiguous() -> None:
    parts = [part.reshape(8, 6, 10, 4) for part in everybodys(1920)]
    expected = {name: view for name, view in views(ranks.sum_of(parts, gln.size()))}
    for name, view in views(here(parts[gln.rank()])):
        same(gln.push_pull(view, name=f"view.{name}"), expected[name], name)


def check_not_contiguous_in_place() -> None:
    for name in ("transposed", "every second", "slice", "channels last"):
        parts = [part.reshape(8, 6, 10, 4) for part in everybodys(1920)]
        view = dict(views(here(parts[gln.rank()])))[name]
        gln.push_pull_inplace(view, name=f"view in place.{name}")
        same(view, dict(views(ranks.sum_of(parts, gln.size())))[name], name)


def check_lazy() -> None:
    imaginary = torch.complex(torch.zeros(100), torch.arange(100.0))
    result = gln.push_pull(here(imaginary).conj().imag, name="lazy")
    same(result, -torch.arange(100.0))


def check_empty_and_scalar() -> None:
    for shape in ((), (0,), (3, 0)):
        on_host = gln.push_pull(torch.ones(shape), name=f"host {shape}")
        same(gln.push_pull(here(torch.ones(shape)), name=f"device {shape}"), on_host, str(shape))


def check_many_at_once() -> None:
    sizes = [1 + 3001 * i for i in range(40)]
    everyones = [everybodys(size, seed=size) for size in sizes]
    handles = [
        gln.push_pull_async(here(parts[gln.rank()]), name=f"many.{size}", priority=-size)
        for size, parts in zip(sizes, everyones)
    ]
    for handle, parts in reversed(list(zip(handles, everyones))):
        same(gln.synchronize(handle), ranks.sum_of(parts, gln.size()))


def check_poll() -> None:
    handle = gln.push_pull_async(mine(10_000), name="polled")
    while not gln.poll(handle):
        pass
    same(gln.synchronize(handle), ranks.sum_of(everybodys(10_000), gln.size()))


def check_dropped_in_flight() -> None:
    handles = []
    for i in range(20):
        handles.append(gln.push_pull_async(here(torch.full((200_000,), float(i))), name=f"dropped.{i}"))
        here(torch.full((200_000,), -1.0))  # memory of a freed tensor would have this value
    for i, handle in enumerate(handles):
        same(gln.synchronize(handle), torch.full((200_000,), float(i)), f"tensor {i}")


def check_large() -> None:
    elements = 16 << 20
    parts = [torch.arange(elements, dtype=torch.float32) * (rank + 1) for rank in range(gln.size())]
    same(gln.push_pull(here(parts[gln.rank()]), False, "large"), ranks.sum_of(parts))


def check_repeated() -> None:
    for step in range(30):
        parts = everybodys(70_000, seed=step)
        same(gln.push_pull(here(parts[gln.rank()]), name="repeated"), ranks.sum_of(parts, gln.size()), f"step {step}")


def check_declared_and_registered() -> None:
    tensor = mine(30_000)
    gln.declare(tensor, "declared")
    gln.register_memory(tensor)
    gln.push_pull_inplace(tensor, name="declared")
    gln.unregister_memory(tensor)
    same(tensor, ranks.sum_of(everybodys(30_000), gln.size()))


def check_accumulate() -> None:
    gln.push_pull(torch.zeros(1), name="before accumulate")
    gln.accumulate(here(torch.full((5000,), gln.rank() + 1.0)), "running")
    gln.push_pull(torch.zeros(1), name="all have accumulated")
    total = gln.accumulate(here(torch.zeros(5000)), "running")
    same(total, torch.full((5000,), float(sum(range(1, gln.size() + 1)))))


def check_broadcast() -> None:
    for kind in (*FLOATS, torch.int64, torch.int32, torch.uint8, torch.bool, torch.complex64):
        parts = [(torch.arange(1000) + rank).to(kind) for rank in range(gln.size())]
        same(gln.broadcast(here(parts[gln.rank()]), root_rank=1), parts[1], str(kind))
        tensor = here(parts[gln.rank()])
        gln.broadcast_(tensor, root_rank=0)
        same(tensor, parts[0], f"{kind} in place")


def check_broadcast_of_models() -> None:
    torch.manual_seed(gln.rank())
    model = here_module(torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Linear(6, 2)))
    optimizer = torch.optim.Adam(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    gln.broadcast_parameters(model.state_dict(), root_rank=0)
    gln.broadcast_optimizer_state(optimizer, root_rank=0)
    torch.manual_seed(0)
    expected = torch.nn.Conv2d(3, 4, 3)
    moved = model[0].weight.detach()
    assert torch.allclose(moved.cpu(), expected.weight.detach(), atol=0.01)
    everyones = gln.push_pull(moved * gln.size(), name="model")
    assert bool((bits(everyones) == bits(moved * gln.size())).all()), "ranks have different parameters"


def here_module(module: torch.nn.Module) -> torch.nn.Module:
    return module.to(ranks.device_of(gln.local_rank()))


def check_broadcast_object() -> None:
    value = gln.broadcast_object({"tensor": here(torch.arange(5)), "rank": gln.rank()}, root_rank=1)
    assert value["rank"] == 1
    assert value["tensor"].tolist() == [0, 1, 2, 3, 4]


if __name__ == "__main__":
    ranks.run(globals())
