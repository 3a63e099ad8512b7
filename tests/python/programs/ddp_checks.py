"""DistributedDataParallel with our hook, over a gloo process group on loopback: the same bits as averaging by hand."""

from __future__ import annotations

import sys
import threading

import gleaner.torch as gln
import torch
import torch.distributed
from checking import raises, run_checks
from torch import nn
from torch_checks import Net, assert_same_parameters, loss_of, momentum, net, reference


class AlwaysDetours(Net):
    def forward(self, data: torch.Tensor, detour: bool = True) -> torch.Tensor:
        return super().forward(data, True)


def distributed(model: nn.Module, state: gln.DDPState | None) -> nn.Module:
    wrapped = nn.parallel.DistributedDataParallel(model)
    wrapped.register_comm_hook(state, gln.ddp_hook)
    return wrapped


def twin() -> AlwaysDetours:
    model = AlwaysDetours()
    model.load_state_dict(net().state_dict())
    return model


def train(model: nn.Module, plain: nn.Module, steps: int) -> None:
    optimizer = momentum(plain)
    for step in range(steps):
        optimizer.zero_grad()
        loss_of(model, gln.rank(), step, True).backward()
        optimizer.step()


def check_hook_equals_manual_averaging() -> None:
    model, expected = twin(), twin()
    reference(expected, momentum(expected), steps=4, detour_rank=None)
    train(distributed(model, None), model, 4)
    assert_same_parameters(model, expected)


class Stack(nn.Module):
    """Equal layers, so that buckets are alike in everything but their index; DDP's first bucket takes a MiB of them."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.layers = nn.Sequential(nn.Linear(20, 300), *(nn.Linear(300, 300) for _ in range(7)))

    def forward(self, data: torch.Tensor, detour: bool = False) -> torch.Tensor:
        return self.layers(data)


def check_many_buckets() -> None:
    model, expected = Stack(), Stack()
    reference(expected, momentum(expected), steps=4)
    seen = set()

    def hook(state, bucket):
        seen.add(bucket.index())
        return gln.ddp_hook(state, bucket)

    wrapped = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.1)
    wrapped.register_comm_hook(gln.DDPState("stack"), hook)
    train(wrapped, model, 4)
    assert len(seen) >= 4, seen
    assert_same_parameters(model, expected)


def check_models_of_one_name_are_told_of_names() -> None:
    one, other = distributed(twin(), gln.DDPState("same")), distributed(twin(), gln.DDPState("same"))
    message = raises(RuntimeError, (loss_of(one, gln.rank(), 0) + loss_of(other, gln.rank(), 0)).backward)
    assert "still in flight" in message and "gln.DDPState(" in message, message


def check_one_thread_serves_all_models() -> None:
    assert [thread.name for thread in threading.enumerate()].count("gln-python") == 1


def check_errors_reach_backward() -> None:
    wrapped = distributed(twin(), gln.DDPState("late"))
    gln.shutdown()
    try:
        loss_of(wrapped, gln.rank(), 0).backward()
    except RuntimeError as error:
        assert "gleaner.init()" in str(error)
    else:
        raise AssertionError("backward after shutdown went well")


def lose_a_rank() -> None:
    """Rank 1 leaves in error; what rank 0's backward says of it goes to standard output."""
    wrapped = distributed(twin(), None)
    if gln.rank() == 1:
        gln.shutdown(failed=True)
        return
    try:
        loss_of(wrapped, gln.rank(), 0).backward()
    except RuntimeError as error:
        print(f"backward said: {error}", flush=True)


def join_both() -> None:
    """The job, and DDP's process group, which meets at the file that the command line names."""
    torch.set_num_threads(1)
    gln.init()
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{sys.argv[1]}", rank=gln.rank(), world_size=gln.size()
    )


if __name__ == "__main__":
    join_both()
    if len(sys.argv) > 2:
        lose_a_rank()
    else:
        run_checks(globals())
