"""Backend `gleaner` of torch.distributed.

    import gleaner.torch.distributed
    torch.distributed.init_process_group("gleaner")

With the wheel, current versions of PyTorch find the backend without the import. It runs under torchrun, `gleaner run`
and in a TrainingJob. docs/pytorch.md tells what goes through summers.
"""

from __future__ import annotations

import inspect

import torch.distributed as dist

from gleaner.torch.distributed.process_group import NAME, ProcessGroup, create


def register() -> None:
    """Registers the backend; does nothing if it is registered. PyTorch calls this by the wheel's entry point."""
    if hasattr(dist.Backend, NAME.upper()):
        return
    has_devices = "devices" in inspect.signature(dist.Backend.register_backend).parameters  # not in PyTorch 1.13
    devices = {"devices": ["cpu", "cuda"]} if has_devices else {}
    dist.Backend.register_backend(NAME, create, extended_api=True, **devices)


register()

__all__ = ["ProcessGroup", "register"]
