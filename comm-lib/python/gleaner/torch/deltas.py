"""Asynchronous training: a parameter is its initial value plus a running sum of the changes that all ranks make.

Each rank adds its changes at its own pace. Source: BytePS's asynchronous mode, whose servers hold the parameters and
add deltas to them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Optional

import torch

from gleaner import exchange
from gleaner.errors import FailedPreconditionError
from gleaner.exchange import AccumulateOptions, PushPullOptions
from gleaner.session import Session
from gleaner.torch.broadcasts import broadcast_parameters
from gleaner.torch.passes import Passes
from gleaner.torch.tensors import TORCH, resolved


@dataclass(eq=False)
class _Exchanged:
    """The values of a parameter whose changes are exchanged."""

    initial: torch.Tensor
    left: torch.Tensor  # the value that the last exchange gave the parameter


class Deltas:
    """Exchanges the changes that steps make to parameters. Not thread safe.

    Initial values are those of rank 0 at the first step. The changes of a parameter are exchanged from the first step
    in which it requires a gradient, and in all later steps.
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
            if parameter.requires_grad or parameter.dtype is torch.float32:  # float32 may be unfrozen later
                session.declare_accumulated(
                    self._tensor_name(parameter),
                    TORCH.elements(parameter),
                    TORCH.data_type(parameter),
                    self._priorities[parameter],
                    staleness,
                )

    @contextlib.contextmanager
    def exchanged(self) -> Iterator[None]:
        """Adds the changes that the caller makes to parameters within this context to the running sums.

        At the end of the context each parameter has its initial value plus the running sum of all ranks. Raises
        FailedPreconditionError if the program has changed a parameter since the last exchange: this exchange would undo
        that change.
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
        """Waits until all ranks call this, then gives all ranks the same parameters. Collective.

        This includes parameters that only some ranks have unfrozen.
        """
        mine = torch.tensor([parameter in self._exchanged for parameter in self._names], dtype=torch.int32)
        options = PushPullOptions(average=False, name=f"{self._name}.synchronize", in_place=True)
        handle = exchange.push_pull_async(self._session, TORCH, mine, options)
        ranks = self._session.synchronize(handle).tolist()
        self._check_unchanged()
        self._exchange_also(parameter for parameter, count in zip(self._names, ranks) if count > 0)
        with self.exchanged():  # adds no change, and sets the parameters from the running sums
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
                    "training supports only changes that step() makes. To continue from other parameters, such as the "
                    "parameters of a checkpoint, wrap the optimizer again on all ranks. To change parameters between "
                    "steps, leave out asynchronous=True"
                )

    def _tensor_name(self, parameter: torch.nn.Parameter) -> str:
        return f"{self._name}.parameter.{self._names[parameter]}"

    def _add(self, parameter: torch.nn.Parameter, delta: torch.Tensor) -> int:
        options = AccumulateOptions(
            self._tensor_name(parameter), self._staleness, self._priorities[parameter], in_place=True
        )
        return exchange.accumulate_async(self._session, TORCH, delta, options)


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the elements, of four bytes each, as int32, so that comparisons also work for NaN."""
    return resolved(tensor).view(torch.int32)
