"""Hooks on parameters: they tell when autograd hands a gradient over, and when it has added it to parameter.grad."""

from __future__ import annotations

import weakref
from typing import Any, Protocol

import torch


class Hooked(Protocol):
    """What hooks call; `place` is that of the parameter."""

    def before_gradient(self, place: int, gradient: torch.Tensor) -> None: ...

    def on_gradient(self, place: int) -> None: ...


class Hooks:
    """The hooks of one parameter, until remove(). They do not keep `owner`, which they call, alive.

    A parameter that requires no gradient now is hooked as well: the hooks stay when requires_grad_() is called.
    """

    def __init__(self, parameter: torch.nn.Parameter, owner: Hooked, place: int) -> None:
        owners = weakref.ref(owner)

        def before(gradient: torch.Tensor) -> None:
            hooked = owners()
            if hooked is not None:
                hooked.before_gradient(place, gradient)

        def after(*_: Any) -> None:
            hooked = owners()
            if hooked is not None:
                hooked.on_gradient(place)

        required = parameter.requires_grad
        parameter.requires_grad_(True)
        self._handles = [parameter.register_hook(before)]
        if hasattr(parameter, "register_post_accumulate_grad_hook"):  # torch >= 2.1
            self._handles.append(parameter.register_post_accumulate_grad_hook(after))
        else:
            # The graph's node that accumulates lives as long as it is referred to; a view of the parameter leads to it.
            with torch.enable_grad():
                self._node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
            self._handles.append(self._node.register_hook(after))
        parameter.requires_grad_(required)

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()
