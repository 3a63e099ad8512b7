"""SyncBatchNorm: batch normalization over the batches of all ranks."""

from __future__ import annotations

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from gleaner.errors import InvalidArgumentError
from gleaner.horovod.torch.differentiable import allreduce
from gleaner.horovod.torch.layer import present
from gleaner.horovod.torch.operations import Sum


class SyncBatchNorm(_BatchNorm):
    """Normalizes by mean and variance of the batches of all ranks. In evaluation it is BatchNorm.

    Takes the arguments of torch.nn.BatchNorm1d and its kin, and tensors of two or more dimensions (N, C, …).
    """

    def _check_input_dim(self, input: torch.Tensor) -> None:
        if input.dim() < 2:
            raise InvalidArgumentError(f"SyncBatchNorm takes tensors of at least 2 dimensions, not {input.dim()}")

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if (not self.training and self.running_mean is not None) or present().size == 1:
            return super().forward(input)
        self._check_input_dim(input)
        others = [place for place in range(input.dim()) if place != 1]
        values = input.double() if input.dtype is torch.float64 else input.float()
        count = torch.full((1,), values.numel() / max(1, input.shape[1]), dtype=values.dtype, device=values.device)
        local = torch.cat([values.sum(others), (values * values).sum(others), count])
        sums, squares, total = allreduce(local, op=Sum).split([input.shape[1], input.shape[1], 1])
        mean = sums / total
        variance = squares / total - mean * mean
        self._update(mean.detach(), variance.detach(), float(total.detach()))
        shape = [1, -1] + [1] * (input.dim() - 2)
        normal = (values - mean.view(shape)) * torch.rsqrt(variance.view(shape) + self.eps)
        if self.affine:
            normal = normal * self.weight.view(shape) + self.bias.view(shape)
        return normal.to(input.dtype)

    def _update(self, mean: torch.Tensor, variance: torch.Tensor, count: float) -> None:
        if self.running_mean is None or not self.training:
            return
        self.num_batches_tracked += 1
        factor = 1.0 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), factor)
        self.running_var.lerp_((variance * count / max(1.0, count - 1)).to(self.running_var.dtype), factor)
