"""A communication hook for torch.nn.parallel.DistributedDataParallel (DDP). Gleaner averages DDP's buckets.

    model = DistributedDataParallel(model)
    model.register_comm_hook(None, gleaner.torch.ddp_hook)

DDP itself still needs a process group; gloo suffices. Each bucket is a tensor named "ddp.INDEX.ELEMENTS". When DDP
rebuilds its buckets after the first step, the new buckets become new tensors.
"""

# No `from __future__ import annotations`: DDP requires the hook's annotations to be types, not strings.
from typing import Optional

import torch
import torch.distributed

from gleaner import exchange, process
from gleaner.completions import Completions
from gleaner.errors import FailedPreconditionError, GleanerError
from gleaner.exchange import PushPullOptions
from gleaner.lasting import LastingInputs
from gleaner.torch.tensors import TORCH


class DDPState:
    """The first argument of register_comm_hook(). A process that trains several models needs one state per model.

    Args:
        name: Prefix of the names of the model's tensors; the same on all ranks, different for each model.
    """

    def __init__(self, name: str = "ddp") -> None:
        self.name = name


_DEFAULT = DDPState()


def ddp_hook(state: Optional[DDPState], bucket: torch.distributed.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Averages a bucket of gradients over all ranks. Pass this function to register_comm_hook().

    Collective: DDP calls it for the same buckets on all ranks. Does not block. DDP fills buckets in the order of the
    backward pass, so buckets with higher indices, which the next forward pass needs first, are sent first.

    Args:
        state: Holds the prefix of the tensors' names; None: the prefix is "ddp".
        bucket: Dense CPU tensors of a floating-point type. The average overwrites the bucket's buffer.

    Returns:
        A future of the averaged buffer, which the thread gln-python completes. If the request fails, the future raises
        the GleanerError of the request.

    Raises:
        FailedPreconditionError: There is no session, or a bucket with this name is in flight, as when two models use
            the same name.
        TypeError: The bucket's type or device is not supported.
        GleanerError: The session has failed; see gleaner.errors.
    """
    session = process.current()
    buffer = bucket.buffer()
    name = f"{(state or _DEFAULT).name}.{bucket.index()}.{buffer.numel()}"
    if session.in_flight(name):
        raise FailedPreconditionError(
            f"bucket '{name}' is still in flight. If this process trains several models with DDP, register the hook "
            'of each model with its own name: register_comm_hook(gln.DDPState("encoder"), gln.ddp_hook)'
        )
    session.attached(LastingInputs).register_if_unmoved(name, TORCH, buffer)
    outcome: torch.futures.Future[tuple[Optional[torch.Tensor], Optional[GleanerError]]] = torch.futures.Future()
    average = outcome.then(_tensor_or_raise)  # DDP sees an error only if a callback raises it
    options = PushPullOptions(name=name, priority=-bucket.index(), in_place=True)
    completions = session.attached(Completions)
    completions.on_done(
        lambda: exchange.push_pull_async(session, TORCH, buffer, options),
        done=lambda tensor: outcome.set_result((tensor, None)),
        failed=lambda error: outcome.set_result((None, error)),
    )
    if bucket.is_last():  # DDP waits next, for all futures
        completions.count_wait()
    return average


def _tensor_or_raise(
    outcome: torch.futures.Future[tuple[Optional[torch.Tensor], Optional[GleanerError]]],
) -> Optional[torch.Tensor]:
    tensor, error = outcome.value()
    if error is not None:
        raise error
    return tensor
