"""Elastic training in PyTorch: workers join and leave while the other workers keep running.

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

gleaner.elastic describes the rounds of an elastic job.
"""

from __future__ import annotations

import copy
from typing import Any, Optional

import torch

from gleaner import elastic, process
from gleaner.elastic import HostsUpdatedInterrupt, State, run
from gleaner.torch.broadcasts import broadcast_optimizer_state, broadcast_parameters
from gleaner.torch.cross_barrier import UpdatesInForward
from gleaner.torch.optimizer import AveragesGradients
from gleaner.torch.tensors import pickled


class ObjectState(elastic.ObjectState):
    """gleaner.elastic.ObjectState, whose values may hold tensors."""

    _pickled = staticmethod(pickled)


class TorchState(ObjectState):
    """The state of a training program: a model, its optimizer, and named values such as the step.

    save() keeps copies of the model's and the optimizer's state in memory. An optimizer that DistributedOptimizer or
    CrossBarrier returned moves to the session of the next round and keeps its state. All ranks must construct the same
    TorchState. Not thread safe.

    Args:
        model: The model; None: there is none.
        optimizer: The optimizer, wrapped or not; None: there is none.
        **values: Initial values of further attributes, as in ObjectState. Pass every value that changes during
            training, such as the step, the epoch or the state of a random generator.
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
        """Keeps copies of the model's state, the optimizer's state and the attributes for restore().

        Raises:
            GleanerError: The optimizer is a CrossBarrier, and its step has failed.
        """
        super().save()
        # The optimizer comes first: CrossBarrier's state_dict() updates overdue parameters, which the model then has.
        self._optimizer_state = None if self.optimizer is None else copy.deepcopy(self.optimizer.state_dict())
        self._model_state = None if self.model is None else copy.deepcopy(self.model.state_dict())

    def restore(self) -> None:
        """Goes back to the state of the last save(), and drops all gradients."""
        super().restore()
        self._abandon()
        if self.model is not None:
            self.model.load_state_dict(self._model_state)
        if self.optimizer is not None:
            self.optimizer.load_state_dict(copy.deepcopy(self._optimizer_state))
            self.optimizer.zero_grad()

    def check_host_updates(self) -> None:
        """Checks whether workers wait to join, as State.check_host_updates().

        Raises:
            HostsUpdatedInterrupt: Workers wait to join; all ranks raise this.
            WorkersChanged: A worker is lost.
            GleanerError: There is no session, or it has failed; see gleaner.errors.
        """
        try:
            super().check_host_updates()
        except HostsUpdatedInterrupt:
            if isinstance(self.optimizer, UpdatesInForward):
                self.optimizer.update_overdue()  # the averages are lost when the Session ends
            raise

    def broadcast(self, root: int) -> None:
        """Copies the attributes, the model and the optimizer's state of rank `root` to all ranks. Collective.

        Args:
            root: Rank whose state is copied; the same on all ranks.

        Raises:
            InvalidArgumentError: `root` is not a rank, or the models of two ranks differ.
            GleanerError: There is no session, or it has failed; see gleaner.errors.
        """
        super().broadcast(root)
        if self.model is not None:
            broadcast_parameters(self.model.state_dict(), root_rank=root)
        if self.optimizer is not None:
            broadcast_optimizer_state(self.optimizer, root_rank=root)

    def move(self) -> None:
        """Moves an optimizer that averages gradients to the new session of the process.

        Raises:
            FailedPreconditionError: There is no session.
        """
        if isinstance(self.optimizer, AveragesGradients):
            self.optimizer._gradients.move_to(process.current())

    def _abandon(self) -> None:
        if isinstance(self.optimizer, AveragesGradients):
            self.optimizer._gradients.abandon()


__all__ = ["HostsUpdatedInterrupt", "ObjectState", "State", "TorchState", "run"]
