"""Hooks on parameters: they report when autograd computes a gradient, and when it has changed parameter.grad."""

from __future__ import annotations

import weakref
from typing import Any, Protocol

import torch


class Hooked(Protocol):
    """Receives the calls of hooks.

    A hook calls before_gradient() before autograd adds `gradient` to parameter.grad, and on_gradient() afterwards.
    `place` is the number that Hooks got for the parameter.
    """

    def before_gradient(self, place: int, gradient: torch.Tensor) -> None: ...

    def on_gradient(self, place: int) -> None: ...


class Hooks:
    """Installs the hooks of one parameter. They call `owner`, to which they hold a weak reference, until remove().

    A parameter that requires no gradient gets hooks as well; they take effect once requires_grad_() is called. Without
    `with_before`, no hook calls before_gradient().
    """

    def __init__(self, parameter: torch.nn.Parameter, owner: Hooked, place: int, with_before: bool = True) -> None:
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
        self._handles = [parameter.register_hook(before)] if with_before else []
        if hasattr(parameter, "register_post_accumulate_grad_hook"):  # torch >= 2.1
            self._handles.append(parameter.register_post_accumulate_grad_hook(after))
        else:
            # A view of the parameter leads to the graph node that accumulates its gradient. Autograd keeps only a weak
            # reference to this node, so self._node keeps it alive.
            with torch.enable_grad():
                self._node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
            self._handles.append(self._node.register_hook(after))
        parameter.requires_grad_(required)

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()
