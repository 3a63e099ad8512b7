"""Finds the closure among the arguments of an optimizer's step()."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Optional

Closure = Callable[[], Any]


class ClosureArgument:
    """Knows which argument of `step`, a bound method, is the closure: the first with "closure" in its name.

    Optimizers of other packages have a step() without a closure, or with more arguments. If the signature of `step` is
    hidden (`*args`), as PyTorch's own wrappers hide it, the closure is the first argument, or an argument that is
    passed as closure=….
    """

    def __init__(self, step: Callable[..., Any]) -> None:
        self._place: Optional[int] = None
        self._name = "closure"
        try:
            parameters = list(inspect.signature(step).parameters.values())
        except (TypeError, ValueError):  # a function that is not written in Python
            self._place = 0
            return
        by_place = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
        named = [each for each in parameters if "closure" in each.name]
        if named:
            self._name = named[0].name
            self._place = by_place.index(named[0]) if named[0] in by_place else None
        elif not by_place and any(each.kind is each.VAR_POSITIONAL for each in parameters):
            self._place = 0

    def find(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> Optional[Closure]:
        """Returns the closure among the arguments of a call, or None if there is none."""
        found = named.get(self._name)
        if found is None and self._place is not None and self._place < len(arguments):
            found = arguments[self._place]
        return found if callable(found) else None

    def replaced(
        self, arguments: Sequence[Any], named: Mapping[str, Any], closure: Closure
    ) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """Returns the arguments of a call that has a closure, with `closure` instead of it."""
        if named.get(self._name) is not None:
            return arguments, {**named, self._name: closure}
        place = self._place or 0
        return (*arguments[:place], closure, *arguments[place + 1 :]), named
