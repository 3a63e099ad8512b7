"""The ranks of a default group change: ranks 0 to 2 begin, rank 2 dies, and rank 3 joins. The order changes, too.

usage: distributed_reconfigure.py BACKEND   run by four ranks, of which rank 2 ends by SIGKILL
"""

from __future__ import annotations

import datetime
import os
import signal
import sys

import gleaner.torch.distributed  # noqa: F401
import torch
import torch.distributed as dist
from checking import raises

NUMBER = int(os.environ["RANK"])  # of this process, in all configurations
STORE = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=NUMBER == 0)
SIZES = (1, 70_001, 300_001)


def handles_of(configuration: int, numbers: list[int]) -> list[str]:
    """Exchanges handles. Gloo's change with each configuration."""
    STORE.set(f"handle/{configuration}/{NUMBER}", dist._get_reconfigure_handle())
    return [STORE.get(f"handle/{configuration}/{number}").decode() for number in numbers]


def check_sums(members: list[int]) -> None:
    for elements in SIZES:
        tensor = torch.full((elements,), NUMBER + 1.0)
        dist.all_reduce(tensor)
        assert (tensor == sum(members) + len(members)).all()


def enter(configuration: int, members: list[int], ordered: bool = True) -> None:
    handles = handles_of(configuration, members)
    dist._reconfigure(configuration, handles if ordered else set(handles)).wait()
    assert dist.get_world_size() == len(members)
    gathered = [None] * len(members)
    dist.all_gather_object(gathered, NUMBER)
    assert gathered == members if ordered else sorted(gathered) == sorted(members)
    assert gathered[dist.get_rank()] == NUMBER
    check_sums(members)


def train(model: torch.nn.Module, members: list[int]) -> None:
    model.zero_grad()
    model(torch.full((1, 300), NUMBER + 1.0)).sum().backward()
    mean = (sum(members) + len(members)) / len(members)
    torch.testing.assert_close(model.module.weight.grad, torch.full((1000, 300), mean))


dist.init_process_group(
    sys.argv[1],
    store=dist.PrefixStore("group", STORE),
    rank=NUMBER,
    world_size=4,
    timeout=datetime.timedelta(seconds=60),
    enable_reconfigure=True,
)
assert dist._supports_reconfigure()
if sys.argv[1] == "gleaner":
    assert "_reconfigure" in raises(RuntimeError, lambda: dist.all_reduce(torch.ones(1)))
if NUMBER < 3:
    enter(7, [0, 1, 2])
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(300, 1000))
    train(model, [0, 1, 2])
    if NUMBER == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    raises(RuntimeError, lambda: check_sums([0, 1, 2]))
    enter(8, [1, 0])
    train(model, [1, 0])
enter(9, [3, 0, 1])
group = dist.new_group([0, 2])
if dist.get_rank() != 1:
    tensor = torch.ones(SIZES[-1])
    dist.all_reduce(tensor, group=group)
    assert (tensor == 2).all()
dist.barrier()  # a rank that leaves a configuration ends the groups that were made of it
enter(10, [0, 1, 3], ordered=False)
if sys.argv[1] == "gleaner":
    assert "used" in raises(RuntimeError, lambda: dist._reconfigure(10, handles_of(10, [0, 1, 3])))
    assert "handles" in raises(RuntimeError, lambda: dist._reconfigure(11, handles_of(7, [2])))
    check_sums([0, 1, 3])
dist.barrier()
print("reconfigured", flush=True)
dist.destroy_process_group()
