"""A communication hook for torch.nn.parallel.DistributedDataParallel: its buckets are summed through Gleaner.

    model = DistributedDataParallel(model)
    model.register_comm_hook(None, gleaner.torch.ddp_hook)

The process group is still needed, by DDP itself: gloo will do. A bucket is a tensor "ddp.INDEX.ELEMENTS"; when DDP
rebuilds its buckets after the first step, they are declared anew.
"""

# Not `from __future__ import annotations`: DDP wants the hook's annotations to be types, not text.
from typing import Optional

import torch
import torch.distributed

from gleaner import exchange, process
from gleaner.completions import Completions
from gleaner.errors import FailedPreconditionError, GleanerError
from gleaner.lasting import LastingInputs
from gleaner.torch.tensors import TORCH


class DDPState:
    """The state to register with ddp_hook, one per model where a process trains several."""

    def __init__(self, name: str = "ddp") -> None:
        self.name = name


_DEFAULT = DDPState()


def ddp_hook(state: Optional[DDPState], bucket: torch.distributed.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Averages a torch.distributed.GradBucket over all ranks; its future is completed on the gln-python thread.

    Buckets come in the order of backward, so the last one is needed first: later buckets go first.
    """
    session = process.current()
    buffer = bucket.buffer()
    name = f"{(state or _DEFAULT).name}.{bucket.index()}.{buffer.numel()}"
    if session.in_flight(name):
        raise FailedPreconditionError(
            f"bucket '{name}' is still in flight: where a process trains several models with DDP, register the "
            'hook of each with a name of its own: register_comm_hook(gln.DDPState("encoder"), gln.ddp_hook)'
        )
    session.attached(LastingInputs).look(name, TORCH, buffer)
    outcome: torch.futures.Future[tuple[Optional[torch.Tensor], Optional[GleanerError]]] = torch.futures.Future()
    average = outcome.then(_tensor_or_raise)  # DDP sees errors only if they were raised in a callback
    session.attached(Completions).on_done(
        lambda: exchange.push_pull_async(
            session, TORCH, buffer, average=True, name=name, priority=-bucket.index(), in_place=True
        ),
        done=lambda tensor: outcome.set_result((tensor, None)),
        failed=lambda error: outcome.set_result((None, error)),
    )
    return average


def _tensor_or_raise(
    outcome: torch.futures.Future[tuple[Optional[torch.Tensor], Optional[GleanerError]]],
) -> Optional[torch.Tensor]:
    tensor, error = outcome.value()
    if error is not None:
        raise error
    return tensor
