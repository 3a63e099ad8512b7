"""Elastic jobs: the number of workers changes during training. The names are those of Horovod Elastic.

    state = gleaner.elastic.ObjectState(step=0)

    @gleaner.elastic.run
    def train(state):
        while state.step < 1000:
            ...
            state.step += 1
            state.commit()

    gleaner.init()
    train(state)

A job is elastic if its coordinator has --min-workers or --max-workers. It goes through rounds, each with one set of
workers (docs/protocol.md#rounds). When a worker is lost, the requests of the other workers end with WorkersChanged.
When new workers wait to join, commit() raises HostsUpdatedInterrupt on all ranks. run() catches both, joins the next
round, gives all ranks the state of the most advanced rank, and calls the function again. In each round a process has a
new rank, and the job a new size. gleaner.torch.elastic adds a state for PyTorch models and optimizers.
"""

from __future__ import annotations

import copy
import functools
import pickle
from collections.abc import Iterable
from typing import Any, Callable, TypeVar

import numpy

from gleaner import arrays, exchange, process
from gleaner.errors import WorkersChanged
from gleaner.exchange import PushPullOptions

R = TypeVar("R")


class HostsUpdatedInterrupt(Exception):
    """Workers wait to join the job. All ranks raise this from the same call of State.check_host_updates()."""


class State:
    """The state of a program that survives a change of workers. Not thread safe.

    Subclasses implement save(), restore() and broadcast(), and move() if they hold objects of the session.
    """

    def __init__(self) -> None:
        self._callbacks: list[Callable[[], None]] = []
        # sync() compares the number of consecutive rounds first, and the number of commits second: a worker that the
        # coordinator declared lost may have continued alone and made more commits than any other worker.
        self._rounds = 0
        self._commits = 0

    def register_reset_callbacks(self, callbacks: Iterable[Callable[[], None]]) -> None:
        """Registers functions to call in every round but the first.

        Args:
            callbacks: Functions without arguments. They are called in order, after the process has joined the round
                and before the state is broadcast.
        """
        self._callbacks.extend(callbacks)

    def commit(self) -> None:
        """Saves the state, and checks whether workers wait to join. Collective: all ranks commit after the same step.

        After the loss of a worker training continues from the last commit. A commit copies the state in memory and
        makes a small push_pull, so committing every few steps may suffice.

        Raises:
            HostsUpdatedInterrupt: Workers wait to join; all ranks raise this.
            WorkersChanged: A worker is lost.
            GleanerError: There is no session, or it has failed; see gleaner.errors.
        """
        self.save()
        self._commits += 1
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """Checks whether workers wait to join, without saving the state. Collective; makes a small push_pull.

        Raises:
            HostsUpdatedInterrupt: Workers wait to join; all ranks raise this.
            WorkersChanged: A worker is lost.
            GleanerError: There is no session, or it has failed; see gleaner.errors.
        """
        session = process.current()
        waiting = numpy.array([1 if session.newcomers() > 0 else 0], numpy.int32)
        if _sum(waiting, "elastic.newcomers")[0] > 0:
            raise HostsUpdatedInterrupt("workers wait to join the job")

    def reset(self) -> None:
        """Moves the state to the session of the round that the process has joined, then calls the reset callbacks.

        Raises:
            GleanerError: There is no session. Errors of the callbacks pass through.
        """
        self.move()
        for callback in self._callbacks:
            callback()

    def sync(self) -> None:
        """Gives all ranks the state of the most advanced rank, and saves it. Collective.

        The most advanced rank is the rank that has taken part in the most consecutive rounds. Among several such ranks
        it is the rank with the most commits, and among equals again the lowest rank.

        Raises:
            WorkersChanged: A worker is lost.
            GleanerError: There is no session, or it has failed; see gleaner.errors.
        """
        root, claim = self._find_root()
        self.broadcast(root)
        self.save()
        self._rounds, self._commits = claim[0] + 1, claim[1]  # last: a sync() that fails must not change them

    def _find_root(self) -> tuple[int, tuple[int, int]]:
        info = process.current().rank_info
        claims = numpy.zeros((info.size, 2), numpy.int32)
        claims[info.rank] = self._rounds, self._commits
        claims = _sum(claims, "elastic.claims")
        root = max(range(info.size), key=lambda rank: (*claims[rank], -rank))
        return root, (int(claims[root][0]), int(claims[root][1]))

    def save(self) -> None:
        """Keeps a copy of the state for restore().

        Raises:
            NotImplementedError: The subclass does not implement it.
        """
        raise NotImplementedError

    def restore(self) -> None:
        """Goes back to the state of the last save().

        Raises:
            NotImplementedError: The subclass does not implement it.
        """
        raise NotImplementedError

    def broadcast(self, root: int) -> None:
        """Overwrites the state of this rank with the state of rank `root`. Collective.

        Args:
            root: Rank whose state is copied; the same on all ranks.

        Raises:
            NotImplementedError: The subclass does not implement it.
        """
        raise NotImplementedError

    def move(self) -> None:
        """Moves the state to the new session of the process. The base class has nothing to move."""


class ObjectState(State):
    """A state whose values are attributes.

    save() copies the values with copy.deepcopy, and broadcasts pickle them.

    Args:
        **values: Names and initial values of the attributes; the same names on all ranks. Attributes that are added
            later are not saved.
    """

    _pickled: Callable[[Any], bytes] = staticmethod(pickle.dumps)

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
        """Keeps a deep copy of the attributes' values for restore()."""
        self._save_values()

    def restore(self) -> None:
        """Gives the attributes copies of the values of the last save()."""
        for name, value in self._saved.items():
            setattr(self, name, copy.deepcopy(value))

    def broadcast(self, root: int) -> None:
        """Overwrites the attributes of this rank with the attributes of rank `root`, sent by pickle. Collective.

        Args:
            root: Rank whose values are copied; the same on all ranks.

        Raises:
            InvalidArgumentError: `root` is not a rank, or the ranks name different roots.
            GleanerError: There is no session, or it has failed; see gleaner.errors.
        """
        ours = {name: getattr(self, name) for name in self._names}
        for name, value in exchange.broadcast_object(process.current(), ours, root, self._pickled).items():
            setattr(self, name, value)


def run(function: Callable[..., R]) -> Callable[..., R]:
    """Decorates a training function, so that it is called again in every round of an elastic job until it returns.

    Call gleaner.init() before the decorated function. All ranks must call it.

    Args:
        function: Training function, whose first argument is a State. It must call gleaner.rank() and gleaner.size() in
            each call, and continue from the state.

    Returns:
        A function with the same arguments that returns the result of `function`. It catches WorkersChanged, after which
        it restores the last commit, and HostsUpdatedInterrupt. Other errors pass through.
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
    options = PushPullOptions(average=False, name=name)
    return session.synchronize(exchange.push_pull_async(session, arrays.NUMPY, array, options))


__all__ = ["HostsUpdatedInterrupt", "ObjectState", "State", "run"]
