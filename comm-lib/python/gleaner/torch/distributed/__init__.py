"""Backend `gleaner` of torch.distributed.

    import gleaner.torch.distributed
    torch.distributed.init_process_group("gleaner")

With the wheel, current versions of PyTorch find the backend without the import. It runs under torchrun, `gleaner run`
and in a TrainingJob. docs/pytorch.md tells what goes through summers.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch.distributed as dist

from gleaner.torch.distributed.compression import set_compression
from gleaner.torch.distributed.process_group import NAME, ProcessGroup
from gleaner.torch.distributed.reconfiguration import ReconfigurableGroup


def create(options: Any, _: Any = None) -> ProcessGroup:
    """Creates the process group of a rank, from the options of PyTorch's extended API."""
    arguments = options.store, options.group_rank, options.group_size, options.timeout
    if getattr(options, "enable_reconfigure", False) and not dist.is_initialized():
        return ReconfigurableGroup(*arguments)
    return ProcessGroup(*arguments, options.global_ranks_in_group)


def register() -> None:
    """Registers the backend; does nothing if it is registered. PyTorch calls this by the wheel's entry point."""
    if hasattr(dist.Backend, NAME.upper()):
        return
    has_devices = "devices" in inspect.signature(dist.Backend.register_backend).parameters  # not in PyTorch 1.13
    devices = {"devices": ["cpu", "cuda"]} if has_devices else {}
    dist.Backend.register_backend(NAME, create, extended_api=True, **devices)


register()

__all__ = ["ProcessGroup", "register", "set_compression"]
