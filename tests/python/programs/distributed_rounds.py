"""A group of an elastic job changes its ranks: rank 2 dies, and the others go on in the next round.

usage: distributed_rounds.py FILE   a file that is not there yet, by which the processes meet
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

STORE = dist.FileStore(sys.argv[1], -1)
NUMBER = STORE.add("processes", 1) - 1
SIZES = (1, 70_001, 300_001)


def enter(configuration: int, members: list[int]) -> None:
    STORE.set(f"handle/{configuration}/{NUMBER}", dist._get_reconfigure_handle())
    dist._reconfigure(configuration, [STORE.get(f"handle/{configuration}/{each}").decode() for each in members]).wait()
    assert dist.get_rank() == members.index(NUMBER) and dist.get_world_size() == len(members)
    check_sums(members)


def check_sums(members: list[int]) -> None:
    for elements in SIZES:
        tensor = torch.full((elements,), NUMBER + 1.0)
        dist.all_reduce(tensor)
        assert (tensor == sum(members) + len(members)).all()


dist.init_process_group(
    "gleaner",
    store=dist.PrefixStore("group", STORE),
    rank=NUMBER,
    world_size=3,
    timeout=datetime.timedelta(seconds=60),
    enable_reconfigure=True,
)
enter(1, [2, 0, 1])
if NUMBER == 2:
    os.kill(os.getpid(), signal.SIGKILL)
raises(RuntimeError, lambda: check_sums([2, 0, 1]))
enter(2, [0, 1])
dist.barrier()
print("reconfigured", flush=True)
dist.destroy_process_group()
