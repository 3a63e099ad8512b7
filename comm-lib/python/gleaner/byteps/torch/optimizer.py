"""DistributedOptimizer with the arguments of byteps.torch."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Optional, Union

import torch

from gleaner.byteps.torch.compression import check_no_parameters
from gleaner.torch import optimizer as gleaners
from gleaner.torch.compression import Compressor
from gleaner.torch.defaults import Default


def DistributedOptimizer(
    optimizer: torch.optim.Optimizer,
    named_parameters: Optional[Iterable[tuple[str, torch.nn.Parameter]]] = None,
    compression: Union[Compressor, Default] = Default.OF_JOB,
    backward_passes_per_step: int = 1,
    compression_params: Any = None,
) -> torch.optim.Optimizer:
    """Wraps an optimizer so that gradients are averaged over all ranks, as gleaner.torch.DistributedOptimizer().

    If the environment variable BYTEPS_ENABLE_ASYNC is a number other than 0, training is asynchronous.

    Args:
        optimizer: As in gleaner.torch.DistributedOptimizer().
        named_parameters: As in gleaner.torch.DistributedOptimizer(); empty: as None.
        compression: As in gleaner.torch.DistributedOptimizer().
        backward_passes_per_step: As in gleaner.torch.DistributedOptimizer().
        compression_params: Must be None.

    Returns:
        As gleaner.torch.DistributedOptimizer().

    Raises:
        TypeError: As in gleaner.torch.DistributedOptimizer(); or `compression_params` is not None.
        GleanerError: As in gleaner.torch.DistributedOptimizer().
    """
    check_no_parameters(compression_params)
    if isinstance(named_parameters, Iterable):
        named_parameters = list(named_parameters) or None
    return gleaners.DistributedOptimizer(
        optimizer,
        named_parameters,
        backward_passes_per_step,
        asynchronous=int(os.environ.get("BYTEPS_ENABLE_ASYNC") or 0) != 0,
        compression=compression,
    )
