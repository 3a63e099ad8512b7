"""Checks automatic registration: only inputs whose memory stays in the same place from step to step are registered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import gleaner.torch as gln
import torch
from checking import run_checks
from ddp_checks import Stack, distributed, join_both, train
from gleaner import process
from gleaner.session import Session
from small_training import assert_same_parameters, loss_of, momentum, reference
from torch import nn

LAYERS = 7  # layers of Stack with weights above 64 KiB; biases and the first layer's weights are smaller


@contextmanager
def watched() -> Iterator[tuple[list[int], list[int]]]:
    """Records the registered and the unregistered addresses, in order."""
    registered: list[int] = []
    unregistered: list[int] = []
    register, unregister = Session.register_memory, Session.unregister_memory

    def note_register(session: Session, address: int, size: int, owner: object) -> None:
        register(session, address, size, owner)
        registered.append(address)

    def note_unregister(session: Session, address: int) -> None:
        unregister(session, address)
        unregistered.append(address)

    patched = mock.patch.multiple(Session, register_memory=note_register, unregister_memory=note_unregister)
    with patched:
        yield registered, unregistered


def distributed_optimizer(model: nn.Module, names: str) -> torch.optim.Optimizer:
    named = [(f"{names}.{name}", parameter) for name, parameter in model.named_parameters()]
    return gln.DistributedOptimizer(momentum(model), named_parameters=named)


def run(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int, drop: bool = False) -> None:
    """Trains a few steps. Between the steps it zeroes gradients or, if `drop`, gives them new memory."""
    kept = []
    for step in range(steps):
        if drop:
            kept.append(
                [parameter.grad for parameter in model.parameters()]
            )  # so that the next gradients get other memory
        optimizer.zero_grad(set_to_none=drop)
        loss_of(model, gln.rank(), step).backward()
        optimizer.step()


def check_gradients_that_are_zeroed() -> None:
    model, expected = Stack(), Stack()
    reference(expected, momentum(expected), steps=5)
    with watched() as (registered, unregistered):
        run(model, distributed_optimizer(model, "zeroed"), 5)
    assert len(registered) == len(set(registered)) == LAYERS, registered
    assert unregistered == []
    assert_same_parameters(model, expected)


def check_gradients_that_move() -> None:
    model, expected = Stack(), Stack()
    reference(expected, momentum(expected), steps=4)
    optimizer = distributed_optimizer(model, "moving")
    with watched() as (registered, unregistered):
        run(model, optimizer, 4)
        assert len(registered) == LAYERS
        assert_same_parameters(model, expected)
        registered.clear()
        run(model, optimizer, 2, drop=True)
        run(model, optimizer, 3)
        assert len(unregistered) == LAYERS and registered == [], "an input that has moved is never registered again"


def check_buckets_of_ddp() -> None:
    model, expected = Stack(), Stack()
    reference(expected, momentum(expected), steps=6)
    with watched() as (registered, unregistered):
        train(distributed(model, gln.DDPState("lasting")), model, 6)
    assert len(registered) >= 2 and unregistered == [], (registered, unregistered)
    assert_same_parameters(model, expected)


def check_what_the_user_has_registered_is_left_alone() -> None:
    model = Stack()
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    mine = [parameter.grad for parameter in model.parameters() if parameter.numel() == 300 * 300]
    for gradient in mine:
        gln.register_memory(gradient)
    with watched() as (registered, unregistered):
        run(model, distributed_optimizer(model, "users"), 4)
        assert (registered, unregistered) == ([], [])
    for gradient in mine:
        gln.unregister_memory(gradient)


def check_it_keeps_memory_whose_tensor_got_other() -> None:
    tensor = torch.ones(100_000)
    address = tensor.data_ptr()
    gln.register_memory(tensor)
    tensor.data = torch.zeros(3)
    others = [torch.empty(100_000) for _ in range(20)]
    assert all(other.data_ptr() != address for other in others), "the memory is not given to others"
    process.current().unregister_memory(address)


if __name__ == "__main__":
    join_both()
    run_checks(globals())
