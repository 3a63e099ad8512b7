"""The thread of a process set that negotiates operations with the other ranks, and starts them."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Sequence
from typing import Optional

from gleaner.errors import FailedPreconditionError, InvalidArgumentError
from gleaner.groups import Group
from gleaner.horovod.torch.execution import Execution
from gleaner.horovod.torch.fusion import fused
from gleaner.horovod.torch.negotiation import JOIN, Decision, Negotiation
from gleaner.horovod.torch.requests import FOREVER, Request
from gleaner.horovod.torch.rounds import Rounds
from gleaner.session import Session
from gleaner.torch.distributed.collectives import Collectives
from gleaner.torch.distributed.works import GleanerWork

NUMBERS = 3  # of groups, for each process set
# Between two rounds without news, while this rank waits for operations that others have not submitted.
_PAUSE_SECONDS = 0.0005


class Controller:
    """The operations of one process set that this rank has submitted.

    A rank takes part in a round while one of its operations waits for a decision, so that idle ranks send nothing.
    Methods are thread safe.

    Args:
        session: The session of this rank.
        number: The first of NUMBERS numbers of groups that all members agree upon.
        members: The members' ranks in the job, of which this rank is one.
    """

    def __init__(self, session: Session, number: int, members: Sequence[int]) -> None:
        self.rounds = Rounds(Group(session, number, members))
        self._collectives = Collectives(session, number + 1, members, FOREVER)
        self._execution = Execution(self._collectives, len(members) == session.rank_info.size)
        self._negotiation = Negotiation(len(members))
        self._changed = threading.Condition()
        self._news: list[Request] = []  # submitted since the last round
        self._waiting: dict[str, Request] = {}  # submitted and not decided, by name
        self._contributed: list[GleanerWork] = []  # what this rank contributes to operations since it has joined
        self._error: Optional[Exception] = None
        self._is_closing = False
        self._thread: Optional[threading.Thread] = None

    def submit(self, request: Request) -> None:
        """Has all ranks learn of an operation.

        Raises:
            InvalidArgumentError: An operation of this name has not been decided.
            GleanerError: The session has failed.
        """
        name = request.description.name
        with self._changed:
            if self._error is not None:
                raise self._error
            if self._is_closing:
                raise FailedPreconditionError("the process set was removed, or shutdown() was called")
            if name in self._waiting:
                raise InvalidArgumentError(f"{name} is in flight: an operation in flight needs a name of its own")
            self._waiting[name] = request
            self._news.append(request)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="gln-horovod", daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        """Ends the thread. Operations that wait for other ranks fail."""
        with self._changed:
            self._is_closing = True
            is_idle = not self._waiting
            self._changed.notify()
        if is_idle and self._thread is not None:
            self._thread.join()
        else:
            self._fail(FailedPreconditionError("this rank left while the operation waited for other ranks"))
        self._collectives.close()

    def _run(self) -> None:
        try:
            while self._has_work():
                self._take_round()
        except Exception as error:  # the session's; any other would leave requests without an end
            self._fail(error)

    def _has_work(self) -> bool:
        """Waits until this rank takes part in a round. Returns false at close()."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closing)
            return bool(self._waiting)

    def _take_round(self) -> None:
        with self._changed:
            news, self._news = self._news, []
        told = self.rounds.exchange(pickle.dumps([each.description for each in news]))
        decisions = self._negotiation.add([pickle.loads(each) for each in told])
        for batch in fused(decisions):
            if len(batch) == 1:
                self._carry_out(batch[0])
            else:
                self._carry_out_fused(batch)
        if not decisions:
            with self._changed:
                self._changed.wait_for(lambda: self._news or self._is_closing, _PAUSE_SECONDS)

    def _carry_out(self, decision: Decision) -> None:
        with self._changed:
            request = self._waiting.pop(decision.name, None)
        if decision.name == JOIN:
            works, self._contributed = self._contributed, []
            request.start(works, lambda: decision.last)
        elif request is None:
            if not decision.error:
                works, _ = self._execution.start(self._execution.zeros(decision.example), decision)
                self._contributed += works
        elif decision.error:
            request.fail(InvalidArgumentError(decision.error))
        else:
            try:
                request.start(*self._execution.start(request, decision))
            except Exception as error:
                request.fail(error)

    def _carry_out_fused(self, batch: Sequence[Decision]) -> None:
        with self._changed:
            submitted = [self._waiting.pop(each.name, None) for each in batch]
        requests = [own or self._execution.zeros(each.example) for own, each in zip(submitted, batch)]
        try:
            started = self._execution.start_fused(requests, batch)
        except Exception as error:
            for each in filter(None, submitted):
                each.fail(error)
            return
        for own, (works, finish) in zip(submitted, started):
            if own is None:
                self._contributed += works
            else:
                own.start(works, finish)

    def _fail(self, error: Exception) -> None:
        with self._changed:
            self._error = error
            failed, self._waiting, self._news = list(self._waiting.values()), {}, []
        for each in failed:
            each.fail(error)
