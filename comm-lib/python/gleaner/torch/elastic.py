"""Elastic training in PyTorch: workers come and go without a restart of the others.

    gln.init()
    optimizer = gln.DistributedOptimizer(optimizer, model.named_parameters())
    state = gln.elastic.TorchState(model=model, optimizer=optimizer, step=0)

    @gln.elastic.run
    def train(state):
        while state.step < 1000:
            ...
            state.step += 1
            state.commit()

    train(state)

How rounds follow each other is in gleaner.elastic.
"""

from __future__ import annotations

import copy
from typing import Any, Optional

import torch

from gleaner import process
from gleaner.elastic import HostsUpdatedInterrupt, ObjectState, State, run
from gleaner.torch.broadcasts import broadcast_optimizer_state, broadcast_parameters
from gleaner.torch.cross_barrier import UpdatesInForward
from gleaner.torch.optimizer import AveragesGradients


class TorchState(ObjectState):
    """A model and its optimizer, and whatever else changes as training goes on: step, epoch, a generator's state.

    An optimizer made by DistributedOptimizer or CrossBarrier goes over to the next round with its state. Copies are
    kept in memory. Values given by keyword are attributes, as in ObjectState.
    """

    def __init__(
        self,
        model: Optional[torch.nn.Module] = None,
        optimizer: Optional[torch.optim.Optimizer] = None,
        **values: Any,
    ) -> None:
        self.model = model
        self.optimizer = optimizer
        super().__init__(**values)
        self.save()

    def save(self) -> None:
        super().save()
        # state_dict() first: CrossBarrier settles what is late, and the parameters with it.
        self._optimizer_state = None if self.optimizer is None else copy.deepcopy(self.optimizer.state_dict())
        self._model_state = None if self.model is None else copy.deepcopy(self.model.state_dict())

    def restore(self) -> None:
        super().restore()
        self._abandon()
        if self.model is not None:
            self.model.load_state_dict(self._model_state)
        if self.optimizer is not None:
            self.optimizer.load_state_dict(copy.deepcopy(self._optimizer_state))
            self.optimizer.zero_grad()

    def check_host_updates(self) -> None:
        try:
            super().check_host_updates()
        except HostsUpdatedInterrupt:
            if isinstance(self.optimizer, UpdatesInForward):
                self.optimizer.settle()  # while the session with its averages is there
            raise

    def broadcast(self, root: int) -> None:
        super().broadcast(root)
        if self.model is not None:
            broadcast_parameters(self.model.state_dict(), root_rank=root)
        if self.optimizer is not None:
            broadcast_optimizer_state(self.optimizer, root_rank=root)

    def move(self) -> None:
        if isinstance(self.optimizer, AveragesGradients):
            self.optimizer._gradients.move_to(process.current())

    def _abandon(self) -> None:
        if isinstance(self.optimizer, AveragesGradients):
            self.optimizer._gradients.abandon()


__all__ = ["HostsUpdatedInterrupt", "ObjectState", "State", "TorchState", "run"]
