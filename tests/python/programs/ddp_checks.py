"""Checks DistributedDataParallel with ddp_hook, in a Gloo process group on loopback: averages have the bits that
Gleaner promises."""

from __future__ import annotations

import sys
import threading
from unittest import mock

import gleaner
import gleaner.torch as gln
import torch
import torch.distributed
from checking import raises, run_checks
from small_training import Net, assert_same_parameters, loss_of, momentum, net, reference, take_step
from torch import nn


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
        take_step(model, optimizer, step, True)


def check_hook_equals_manual_averaging() -> None:
    model, expected = twin(), twin()
    reference(expected, momentum(expected), steps=4, detour_rank=None)
    train(distributed(model, None), model, 4)
    assert_same_parameters(model, expected)


def check_compressed_buckets_have_the_bits_of_sums_of_float16() -> None:
    model, expected = twin(), twin()
    reference(expected, momentum(expected), steps=3, detour_rank=None, sent_as=torch.float16)
    state = gln.DDPState("compressed", compression=gln.Compression.fp16)
    train(distributed(model, state), model, 3)
    assert_same_parameters(model, expected)
    elements = sum(each.numel() for each in model.parameters())
    assert sum(gleaner.tensor_plan(f"compressed.0.{elements}")["partition_bytes"]) == 2 * elements
    state = gln.DDPState("blocks", compression=gln.Compression.int8)
    train(distributed(twin(), state), model, 1)
    blocks = -(-elements // 1024)
    assert sum(gleaner.tensor_plan(f"blocks.0.{elements}")["partition_bytes"]) == 1028 * blocks
    told = raises(TypeError, lambda: gln.DDPState("x", compression=torch.float16))
    assert "Compression.bf16" in told, told


class Stack(nn.Module):
    """A model of equal layers, so that buckets differ only in their index. DDP's first bucket has one MiB of layers."""

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


def check_errors_of_the_framework_end_their_pass_alone() -> None:
    """A failed GPU raises errors of PyTorch in the hook."""
    model, expected = Stack(), Stack()
    wrapped = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.1)
    wrapped.register_comm_hook(gln.DDPState("framework"), gln.ddp_hook)
    with mock.patch("gleaner.exchange.push_pull_async", side_effect=RuntimeError("CUDA error of a test")):
        assert "CUDA error of a test" in raises(RuntimeError, loss_of(wrapped, 0, 0).backward)
    reference(expected, momentum(expected), steps=2, detour_rank=None)
    train(wrapped, model, 2)
    assert_same_parameters(model, expected)


def check_models_of_one_name_are_told_of_names() -> None:
    """Only rank 0 gets the error: the first bucket is in flight there until rank 1 sends its first bucket."""
    one, other = distributed(twin(), gln.DDPState("same")), distributed(twin(), gln.DDPState("same"))
    if gln.rank() == 0:
        message = raises(gln.GleanerError, (loss_of(one, 0, 0) + loss_of(other, 0, 0)).backward)
        assert "still in flight" in message and "gln.DDPState(" in message, message
    torch.distributed.barrier()
    if gln.rank() == 1:
        loss_of(one, 1, 0).backward()


def check_models_of_one_name_are_told_of_names_even_if_one_is_faster() -> None:
    def waiting_hook(state, bucket):
        average = gln.ddp_hook(state, bucket)
        average.wait()
        return average

    one, other = (nn.parallel.DistributedDataParallel(twin()) for _ in range(2))
    for model in (one, other):
        model.register_comm_hook(gln.DDPState("slow"), waiting_hook)
    for _ in range(2):  # the error of one pass does not disturb the next one
        loss_of(one, 0, 0).backward()
        message = raises(gln.GleanerError, (loss_of(one, 0, 0) + loss_of(other, 0, 0)).backward)
        assert "comes twice in one backward pass" in message, message


def assert_same_on_both_ranks(tensors: list[torch.Tensor]) -> None:
    for tensor in tensors:
        total = tensor.clone()
        torch.distributed.all_reduce(total)
        assert torch.equal(total, 2 * tensor)


def check_join_serves_uneven_inputs() -> None:
    """After its last input, rank 0 takes part in the averages of rank 1, outside of a backward pass."""
    model = twin()
    wrapped = distributed(model, gln.DDPState("uneven"))
    optimizer = momentum(model)
    with wrapped.join():
        for step in range(2 + gln.rank()):
            optimizer.zero_grad()
            loss_of(wrapped, gln.rank(), step).backward()
            optimizer.step()
    assert_same_on_both_ranks([parameter.detach() for parameter in model.parameters()])


def check_an_error_leaves_the_model_of_another_thread_alone() -> None:
    model, state = twin(), gln.DDPState("unharmed")
    one, other = distributed(twin(), gln.DDPState("twice")), distributed(twin(), gln.DDPState("twice"))
    if gln.rank() == 0:
        begun = threading.Event()

        def hook(state, bucket):
            future = gln.ddp_hook(state, bucket)
            begun.set()
            return future

        wrapped = nn.parallel.DistributedDataParallel(model)
        wrapped.register_comm_hook(state, hook)
        thread = threading.Thread(target=lambda: loss_of(wrapped, 0, 0).backward())
        thread.start()
        begun.wait()
        raises(gln.GleanerError, (loss_of(one, 0, 0) + loss_of(other, 0, 0)).backward)
        torch.distributed.barrier()
        thread.join()
    else:
        wrapped = nn.parallel.DistributedDataParallel(model)
        wrapped.register_comm_hook(state, gln.ddp_hook)
        torch.distributed.barrier()
        loss_of(one, 1, 0).backward()
        loss_of(wrapped, 1, 0).backward()
    assert_same_on_both_ranks([parameter.grad for parameter in model.parameters() if parameter.grad is not None])


def check_one_thread_serves_all_models() -> None:
    assert [thread.name for thread in threading.enumerate()].count("gln-python") == 1


def check_errors_reach_backward() -> None:
    wrapped = distributed(twin(), gln.DDPState("late"))
    gln.shutdown()
    try:
        loss_of(wrapped, gln.rank(), 0).backward()
    except gln.GleanerError as error:
        assert "gleaner.init()" in str(error)
    else:
        raise AssertionError("backward after shutdown went well")


def lose_a_rank() -> None:
    """Rank 1 leaves with an error. Rank 0 prints the error that its backward pass raises."""
    wrapped = distributed(twin(), None)
    if gln.rank() == 1:
        gln.shutdown(failed=True)
        return
    try:
        loss_of(wrapped, gln.rank(), 0).backward()
    except gln.GleanerError as error:
        print(f"backward said: {error}", flush=True)


def join_both() -> None:
    """Joins the job, and DDP's process group, whose ranks find each other through the file on the command line."""
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
