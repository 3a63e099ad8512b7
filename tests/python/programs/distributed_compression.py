"""Checks compressed sums of a process group of three ranks."""

from __future__ import annotations

import gleaner.torch.distributed as backend
import torch
import torch.distributed as dist
from checking import raises, run_checks
from gleaner import InvalidArgumentError, process
from gleaner.torch import Compression

ELEMENTS = 1 << 18


def sent_bytes(name: str) -> int:
    return sum(process.tensor_plan(name)["partition_bytes"])


def check_sums_travel_as_float16() -> None:
    backend.set_compression(Compression.fp16)
    values = [
        torch.rand(ELEMENTS, generator=torch.Generator().manual_seed(rank)) for rank in range(dist.get_world_size())
    ]
    own = values[dist.get_rank()].clone()
    dist.all_reduce(own)
    expected = sum((each.half().float() for each in values[1:]), values[0].half().float()).half().float()
    assert torch.equal(own, expected)
    assert sent_bytes(f"all_reduce.0.float32.{ELEMENTS}.0.as_float16") == 2 * ELEMENTS
    backend.set_compression(Compression.none)
    again = values[dist.get_rank()].clone()
    dist.all_reduce(again)
    assert torch.equal(again, sum(values[1:], values[0].clone())), "as they are again"


def check_sums_travel_as_bytes() -> None:
    backend.set_compression(Compression.int8(error_feedback=False))
    own = torch.full((ELEMENTS,), float(dist.get_rank() + 1))
    dist.all_reduce(own)
    backend.set_compression(Compression.none)
    total = sum(range(1, dist.get_world_size() + 1))
    assert torch.allclose(own, torch.full((ELEMENTS,), float(total)), rtol=1e-6)
    whole = torch.full((ELEMENTS,), 3, dtype=torch.float64)
    dist.all_reduce(whole)
    assert whole.unique().tolist() == [3.0 * dist.get_world_size()]


def check_bad_compression_is_refused() -> None:
    for bad in (Compression.int8, Compression.int8(error_feedback=False, momentum=0.5)):
        assert "ddp_hook" in raises(InvalidArgumentError, lambda bad=bad: backend.set_compression(bad))
    assert "Compression.fp16" in raises(TypeError, lambda: backend.set_compression("fp16"))
    raises(TypeError, lambda: backend.set_compression(Compression.fp16, group=3))
    some = dist.new_group([0, 1])
    if dist.get_rank() < 2:
        told = raises(InvalidArgumentError, lambda: backend.set_compression(Compression.fp16, some))
        assert "all ranks" in told


if __name__ == "__main__":
    dist.init_process_group("gleaner")
    run_checks(globals())
    dist.destroy_process_group()
