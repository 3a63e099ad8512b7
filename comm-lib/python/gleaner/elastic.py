"""Elastic jobs: n changes while training goes on. The names are those that users of Horovod Elastic know.

    state = gleaner.elastic.ObjectState(step=0)

    @gleaner.elastic.run
    def train(state):
        while state.step < 1000:
            ...
            state.step += 1
            state.commit()

    gleaner.init()
    train(state)

A job whose coordinator was told --min-workers goes through rounds, each with one set of workers. When a worker is lost,
push_pulls of the others end with WorkersChanged; when workers wait to take part, commit() raises HostsUpdatedInterrupt
on all ranks. run() catches both, joins the next round, gives all ranks the state of the one that has the most commits,
and calls the function again. Ranks and their number are others then. For PyTorch see gleaner.torch.elastic.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable
from typing import Any, Callable, TypeVar

import numpy

from gleaner import arrays, exchange, process
from gleaner.errors import WorkersChanged

R = TypeVar("R")


class HostsUpdatedInterrupt(Exception):
    """Workers wait to take part: all ranks raise it from the same check_host_updates()."""


class State:
    """What survives a change of workers. Subclasses say how it is saved, restored and broadcast."""

    def __init__(self) -> None:
        self._callbacks: list[Callable[[], None]] = []
        # Who has been longest with those that went on has the state that counts, before commits are compared: one that
        # was taken for lost may have made commits of its own.
        self._rounds = 0
        self._commits = 0

    def register_reset_callbacks(self, callbacks: Iterable[Callable[[], None]]) -> None:
        """Has these called, in order, once the next round is joined and before its state is broadcast."""
        self._callbacks.extend(callbacks)

    def commit(self) -> None:
        """Saves the state, which is where training goes on after a loss, and looks whether workers wait.

        All ranks commit at the same step. It costs a copy and a small push_pull: every few steps may be often enough.
        """
        self.save()
        self._commits += 1
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """Raises HostsUpdatedInterrupt, on all ranks, when workers wait to take part; without having saved anything."""
        session = process.current()
        waiting = numpy.array([1 if session.newcomers() > 0 else 0], numpy.int32)
        if _sum(waiting, "elastic.newcomers")[0] > 0:
            raise HostsUpdatedInterrupt("workers wait to take part")

    def reset(self) -> None:
        """After the next round was joined: goes over to it, then calls what was registered."""
        self.move()
        for callback in self._callbacks:
            callback()

    def sync(self) -> None:
        """Gives all ranks the state of the one that has the most commits, and saves it."""
        root, claim = self._find_root()
        self.broadcast(root)
        self.save()
        self._rounds, self._commits = claim[0] + 1, claim[1]  # not sooner: until here we have not what they stand for

    def _find_root(self) -> tuple[int, tuple[int, int]]:
        topology = process.current().topology
        claims = numpy.zeros((topology.size, 2), numpy.int32)
        claims[topology.rank] = self._rounds, self._commits
        claims = _sum(claims, "elastic.claims")
        root = max(range(topology.size), key=lambda rank: (*claims[rank], -rank))
        return root, (int(claims[root][0]), int(claims[root][1]))

    def save(self) -> None:
        raise NotImplementedError

    def restore(self) -> None:
        raise NotImplementedError

    def broadcast(self, root: int) -> None:
        """Makes this rank's state that of rank `root`."""
        raise NotImplementedError

    def move(self) -> None:
        """Goes over to the process's new session."""


class ObjectState(State):
    """Attributes: every keyword becomes one. Values are copied to be saved, and pickled to be broadcast."""

    def __init__(self, **values: Any) -> None:
        super().__init__()
        self._saved: dict[str, Any] = {}
        self._names = list(values)
        for name, value in values.items():
            setattr(self, name, value)
        self._save_values()

    def _save_values(self) -> None:
        self._saved = {name: copy.deepcopy(getattr(self, name)) for name in self._names}

    def save(self) -> None:
        self._save_values()

    def restore(self) -> None:
        for name, value in self._saved.items():
            setattr(self, name, copy.deepcopy(value))

    def broadcast(self, root: int) -> None:
        ours = {name: getattr(self, name) for name in self._names}
        for name, value in exchange.broadcast_object(process.current(), ours, root).items():
            setattr(self, name, value)


def run(function: Callable[..., R]) -> Callable[..., R]:
    """Decorates a function whose first argument is a State: it is called again in every round until it returns.

    gleaner.init() comes before, as ever; errors other than a change of workers pass through.
    """

    @functools.wraps(function)
    def rounds(state: State, *arguments: Any, **named: Any) -> R:
        while True:
            try:
                state.sync()
                return function(state, *arguments, **named)
            except WorkersChanged:
                state.restore()
            except HostsUpdatedInterrupt:
                pass
            process.rejoin()
            state.reset()

    return rounds


def _sum(array: numpy.ndarray, name: str) -> numpy.ndarray:
    session = process.current()
    handle = exchange.push_pull_async(
        session, arrays.NUMPY, array, average=False, name=name, priority=0, in_place=False
    )
    return session.synchronize(handle)


__all__ = ["HostsUpdatedInterrupt", "ObjectState", "State", "run"]
