"""Parameters that all ranks add to, each at its own pace: the initial values and a running sum of every rank's steps.

Source: BytePS's asynchronous mode, whose servers hold the parameters and add deltas to them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Optional

import torch

from gleaner import exchange
from gleaner.errors import FailedPreconditionError
from gleaner.session import Session
from gleaner.torch.broadcasts import broadcast_parameters
from gleaner.torch.passes import Passes
from gleaner.torch.tensors import TORCH


@dataclass(eq=False)
class _Exchanged:
    """A parameter that all ranks add to."""

    initial: torch.Tensor
    left: torch.Tensor  # what the last exchange left in the parameter


class Deltas:
    """Exchanges what each step changes. Initial values are those of rank 0 at the first step.

    A parameter is exchanged from the first step on in which it requires a gradient, and for good.
    """

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
        self._names = {parameter: name for name, parameter in named_parameters}
        self._priorities = {parameter: place if prioritize else 0 for place, parameter in enumerate(self._names)}
        self._begun = False
        self._exchanged: dict[torch.nn.Parameter, _Exchanged] = {}
        for parameter in self._names:
            if parameter.requires_grad or parameter.dtype is torch.float32:  # the latter may be unfrozen later
                session.declare_accumulated(
                    self._tensor_name(parameter),
                    TORCH.elements(parameter),
                    TORCH.data_type(parameter),
                    self._priorities[parameter],
                    staleness,
                )

    @contextlib.contextmanager
    def exchanged(self) -> Iterator[None]:
        """Adds what happens to the parameters within this context to everybody's, and has theirs afterwards.

        FailedPreconditionError where a parameter was changed since the last time, which would be undone.
        """
        if not self._begun:
            broadcast_parameters({name: parameter for parameter, name in self._names.items()})
            self._begun = True
        self._check_unchanged()
        self._exchange_also(parameter for parameter in self._names if parameter.requires_grad)
        yield
        with torch.no_grad():
            handles = {
                parameter: self._add(parameter, parameter.detach() - each.left)
                for parameter, each in self._exchanged.items()
            }
            for parameter, handle in handles.items():
                each = self._exchanged[parameter]
                torch.add(each.initial, self._session.synchronize(handle), out=each.left)
                parameter.data.copy_(each.left)
        self._session.step()

    def synchronize(self) -> None:
        """Waits for all ranks; then all have the same parameters, also those that only some ranks have unfrozen."""
        mine = torch.tensor([parameter in self._exchanged for parameter in self._names], dtype=torch.int32)
        everybodys = exchange.push_pull_async(
            self._session, TORCH, mine, average=False, name=f"{self._name}.synchronize", priority=0, in_place=True
        )
        ranks = self._session.synchronize(everybodys).tolist()
        self._check_unchanged()
        self._exchange_also(parameter for parameter, count in zip(self._names, ranks) if count > 0)
        with self.exchanged():  # adds nothing, and gets what is in
            pass

    def _exchange_also(self, parameters: Iterable[torch.nn.Parameter]) -> None:
        for parameter in parameters:
            if parameter not in self._exchanged:
                value = parameter.detach()
                self._exchanged[parameter] = _Exchanged(value.clone(), value.clone())

    def _check_unchanged(self) -> None:
        for parameter, each in self._exchanged.items():
            if not torch.equal(_bits(parameter), _bits(each.left)):
                raise FailedPreconditionError(
                    f"{self._names[parameter]} was changed since the last step() or synchronize(), and asynchronous "
                    "training cannot take over changes that step() did not make: to go on from other parameters, as "
                    "those of a checkpoint, wrap the optimizer again on all ranks; leave out asynchronous=True to "
                    "clamp parameters between steps"
                )

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


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """Its elements, which have four bytes each, as numbers that equal themselves: NaN does not."""
    return tensor.detach().view(torch.int32)
