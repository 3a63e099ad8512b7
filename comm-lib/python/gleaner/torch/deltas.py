"""Parameters that all ranks add to, each at its own pace: the initial values and a running sum of every rank's steps.

Source: BytePS's asynchronous mode, whose servers hold the parameters and add deltas to them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Optional

import torch

from gleaner import exchange
from gleaner.session import Session
from gleaner.torch.broadcasts import broadcast_parameters
from gleaner.torch.passes import Passes
from gleaner.torch.tensors import TORCH


class Deltas:
    """Exchanges what each step changes. Initial values are those of rank 0 at the first step."""

    def __init__(
        self,
        session: Session,
        named_parameters: Iterable[tuple[str, torch.nn.Parameter]],
        staleness: Optional[int],
        prioritize: bool,
        name: Optional[str],
    ) -> None:
        self._session = session
        self._name = name or f"optimizer.{session.attached(Passes).next_number()}"
        self._staleness = staleness
        self._names = {parameter: name for name, parameter in named_parameters if parameter.requires_grad}
        self._priorities = {parameter: place if prioritize else 0 for place, parameter in enumerate(self._names)}
        self._initial: dict[torch.nn.Parameter, torch.Tensor] = {}
        for parameter in self._names:
            session.declare_accumulated(
                self._tensor_name(parameter),
                TORCH.elements(parameter),
                TORCH.data_type(parameter),
                self._priorities[parameter],
                staleness,
            )

    @contextlib.contextmanager
    def exchanged(self) -> Iterator[None]:
        """Adds what happens to the parameters within this context to everybody's, and has theirs afterwards."""
        if not self._initial:
            broadcast_parameters({name: parameter for parameter, name in self._names.items()})
            self._initial = {parameter: parameter.detach().clone() for parameter in self._names}
        before = {parameter: parameter.detach().clone() for parameter in self._names}
        yield
        with torch.no_grad():
            handles = [
                (parameter, self._add(parameter, parameter.detach() - earlier)) for parameter, earlier in before.items()
            ]
            for parameter, handle in handles:
                torch.add(self._initial[parameter], self._session.synchronize(handle), out=parameter.data)
        self._session.step()

    def synchronize(self) -> None:
        """Waits for all ranks; then all have the same parameters."""
        everybody = exchange.push_pull_async(
            self._session,
            TORCH,
            torch.ones(1, dtype=torch.int32),
            average=False,
            name=f"{self._name}.synchronize",
            priority=0,
            in_place=True,
        )
        self._session.synchronize(everybody)
        with self.exchanged():  # adds nothing, and gets what is in
            pass

    def _tensor_name(self, parameter: torch.nn.Parameter) -> str:
        return f"{self._name}.parameter.{self._names[parameter]}"

    def _add(self, parameter: torch.nn.Parameter, delta: torch.Tensor) -> int:
        return exchange.push_pull_async(
            self._session,
            TORCH,
            delta,
            average=False,
            name=self._tensor_name(parameter),
            priority=self._priorities[parameter],
            in_place=True,
            accumulate=True,
            staleness=self._staleness,
        )
