"""The arithmetic of LARS (lars.py has the equation): norms, ratios and scaled gradients of one parameter group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from gleaner.errors import InvalidArgumentError

_HALF = (torch.float16, torch.bfloat16)


def gradients_are_dense(optimizer: torch.optim.Optimizer) -> None:
    """Raises InvalidArgumentError if a gradient of the optimizer is sparse."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.grad is not None and parameter.grad.layout is not torch.strided:
                raise InvalidArgumentError(
                    f"LARS needs dense gradients, and that of a parameter of shape {tuple(parameter.shape)} is sparse: "
                    "make its layer with sparse=False"
                )


@torch.no_grad()
def scaled_gradients(
    parameters: Sequence[torch.nn.Parameter], settings: Mapping[str, Any]
) -> Iterator[tuple[torch.nn.Parameter, torch.Tensor]]:
    """Returns the parameters of a group whose gradients change, with new tensors for these gradients.

    The result for a parameter has the same bits whichever other parameters the group has, and on a GPU nothing waits
    for the GPU.

    Args:
        parameters: Parameters of the group. Those without a gradient are skipped.
        settings: Hyperparameters of the group, with those of LARS.
    """
    decay = settings.get("weight_decay") or 0.0
    if settings.get("maximize"):  # the optimizer negates gradients
        decay = -decay
    with_gradient = [each for each in parameters if each.grad is not None]
    adaptive = [each for each in with_gradient if _is_adaptive(each, settings)]
    ratios = _ratios(adaptive, settings)
    changed = with_gradient if decay else adaptive
    scaled = [_widened(each.grad) for each in changed]
    if decay and changed:
        scaled = torch._foreach_add(scaled, [_widened(each) for each in changed], alpha=decay)
    for parameter, gradient in zip(changed, scaled):
        if parameter in ratios:
            gradient = gradient * ratios[parameter]
        yield parameter, gradient.to(parameter.dtype)


def _is_adaptive(parameter: torch.nn.Parameter, settings: Mapping[str, Any]) -> bool:
    return parameter.ndim > 1 if settings["lars"] is None else settings["lars"]


def _widened(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.float() if tensor.dtype in _HALF else tensor


def _ratios(
    parameters: Sequence[torch.nn.Parameter], settings: Mapping[str, Any]
) -> dict[torch.nn.Parameter, torch.Tensor]:
    """Returns the ratio of each parameter, a tensor without dimensions on the parameter's device."""
    alike: dict[tuple[torch.device, torch.dtype], list[torch.nn.Parameter]] = {}
    for each in parameters:
        alike.setdefault((each.device, each.dtype), []).append(each)
    found = {}
    for some in alike.values():
        ratios = _ratio(_norms(some), _norms([each.grad for each in some]), settings)
        found.update(zip(some, ratios.unbind()))
    return found


def _ratio(weights: torch.Tensor, gradients: torch.Tensor, settings: Mapping[str, Any]) -> torch.Tensor:
    """Returns ratios for norms of parameters and gradients. All three have one element for each parameter."""
    # add() with alpha= would round elements differently by their place in the vector.
    divisor = gradients + weights * (settings.get("weight_decay") or 0.0) + settings["lars_eps"]
    ratio = weights * settings["lars_trust_coefficient"] / divisor
    if settings["lars_clip"]:
        ratio = (ratio / settings["lr"]).clamp(max=1.0)
    usable = (weights > 0) & weights.isfinite() & (gradients > 0) & gradients.isfinite()
    return torch.where(usable, ratio, torch.ones_like(ratio))


def _norms(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Returns the Euclidean norms of tensors of one type on one device, in float32 if the type is narrower."""
    if tensors[0].dtype in _HALF:
        return torch.stack([torch.linalg.vector_norm(each, dtype=torch.float32) for each in tensors])
    return torch.stack(torch._foreach_norm(list(tensors)))
