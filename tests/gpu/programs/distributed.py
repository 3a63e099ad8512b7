"""Checks backend gleaner of torch.distributed with tensors of a device, beside tensors of the host."""

from __future__ import annotations

import datetime
from typing import Any, Callable

import gleaner.torch as gln
import gleaner.torch.distributed  # noqa: F401
import ranks
import torch
import torch.distributed as dist
from small_training import equal
from torch import nn

SIZES = (1, 1001, 70_001, 300_001)  # by one call, in parts, by push_pull
TYPES = (torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.uint8)


def device() -> torch.device:
    return ranks.device_of(gln.local_rank())


def join() -> None:
    """Makes the default group at the first check: the program's session is open then."""
    if not dist.is_initialized():
        backend = "cpu:gleaner,cuda:gleaner" if ranks.ARGUMENTS.device == "cuda" else "gleaner"
        dist.init_process_group(backend, timeout=datetime.timedelta(seconds=30))


def data(elements: int, dtype: torch.dtype, rank: int) -> torch.Tensor:
    numbers = torch.randn(elements, generator=torch.Generator().manual_seed(elements + rank)) * 8
    return numbers.to(dtype)


def beside_host(collective: Callable[[Callable[[torch.Tensor], torch.Tensor]], list[torch.Tensor]]) -> None:
    """Asserts that a collective has the same bits with tensors of the device and with those of the host."""
    for on_device, on_host in zip(collective(lambda tensor: tensor.to(device())), collective(lambda tensor: tensor)):
        assert on_device.device.type == device().type and equal(on_device.cpu(), on_host)


def check_all_reduce() -> None:
    join()
    for dtype in TYPES:
        for elements in SIZES:

            def collective(place: Any, dtype: torch.dtype = dtype, elements: int = elements) -> list[torch.Tensor]:
                tensor = place(data(elements, dtype, gln.rank()))
                dist.all_reduce(tensor)
                return [tensor]

            beside_host(collective)


def check_movements() -> None:
    join()
    rank, size = gln.rank(), gln.size()

    def collective(place: Any) -> list[torch.Tensor]:
        one = place(data(5000, torch.float32, rank))
        whole = place(torch.empty(5000 * size))
        dist.all_gather_into_tensor(whole, one)
        part, exchanged = torch.empty_like(one), torch.empty_like(whole)
        dist.reduce_scatter_tensor(part, whole)
        dist.all_to_all_single(exchanged, whole)
        dist.broadcast(one, size - 1)
        sent = place(torch.full((7,), float(rank)))
        received = torch.empty_like(sent)
        for work in dist.batch_isend_irecv(
            [dist.P2POp(dist.isend, sent, (rank + 1) % size), dist.P2POp(dist.irecv, received, (rank - 1) % size)]
        ):
            work.wait()
        return [one, whole, part, exchanged, received]

    beside_host(collective)


def check_works_wait_for_the_stream_that_makes_their_tensors() -> None:
    ranks.needs_cuda()
    join()
    side = torch.cuda.Stream()
    for elements in SIZES:
        with torch.cuda.stream(side):
            torch.cuda._sleep(50_000_000)
            tensor = torch.full((elements,), gln.rank() + 1.0, device=device())
            work = dist.all_reduce(tensor, async_op=True)
            work.wait()
            doubled = tensor * 2
        side.synchronize()
        assert (doubled == gln.size() * (gln.size() + 1)).all()


def check_ddp_has_the_parameters_of_one_process() -> None:
    join()
    trained = train(nn.parallel.DistributedDataParallel(model_of()), [gln.rank()])
    alone = train(model_of(), list(range(gln.size())))
    for own, expected in zip(trained, alone):
        torch.testing.assert_close(own, expected, rtol=1e-10, atol=1e-12)


def check_fully_sharded_parameters() -> str:
    join()
    try:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
    except ImportError:
        raise ranks.Skip("this PyTorch has no fully_shard") from None
    model = model_of()
    fully_shard(model, mesh=init_device_mesh(device().type, (gln.size(),)))
    train(model, [gln.rank()])
    whole = [parameter.full_tensor() for parameter in model.parameters()]
    for own, expected in zip(whole, train(model_of(), list(range(gln.size())))):
        torch.testing.assert_close(own.detach(), expected, rtol=1e-10, atol=1e-12)
    return "FSDP2"


def model_of() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(40, 300), nn.ReLU(), nn.Linear(300, 10)).double().to(device())


def train(model: nn.Module, of_ranks: list[int]) -> list[torch.Tensor]:
    """Trains on the inputs of ranks, in float64, and returns the parameters."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        inputs = torch.cat([data(40 * 8, torch.float64, 100 * step + rank).view(8, 40) for rank in of_ranks])
        model(inputs.to(device())).square().mean().backward()
        optimizer.step()
    return [parameter.detach() for parameter in model.parameters()]


if __name__ == "__main__":
    ranks.run(globals())
