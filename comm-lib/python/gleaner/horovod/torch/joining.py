"""How a process of Horovod's layer joins its job: by the coordinator of a launcher of Gleaner, or under torchrun."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import torch.distributed as dist

from gleaner import process
from gleaner.torch.distributed import job

_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_STORE_SECONDS = 300  # until rank 0 has the store


def join() -> None:
    """Joins the job of this process. Does nothing if it has joined. Collective; blocks.

    Without a coordinator in the environment, ranks meet at the store of torch.distributed, as torchrun's variables
    describe it, or at that of the default group. Rank 0 then starts a coordinator.

    Raises:
        GleanerError: As in gleaner.init().
    """
    if process.is_initialized() or job.has_coordinator() or not all(name in os.environ for name in _VARIABLES):
        process.init()
        return
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    job.open_session(dist.PrefixStore("gleaner.horovod", _store(rank)), rank, size)


def _store(rank: int) -> Any:
    """Returns a store of all ranks. One that this process makes may share its port with that of a later group."""
    if dist.is_initialized():
        return dist.distributed_c10d._get_default_store()
    is_server = rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"  # else torchrun has it
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    return dist.TCPStore(
        address,
        port,
        int(os.environ["WORLD_SIZE"]),
        is_server,
        timedelta(seconds=_STORE_SECONDS),
        wait_for_workers=False,
        multi_tenant=True,
    )
