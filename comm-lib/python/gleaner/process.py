"""The one session of a process, for those who call gleaner.init() and never see a Session.

`session`, and what it was opened with, is the only state; everything else in the package takes sessions as arguments.
"""

from __future__ import annotations

import atexit
import contextlib
import sys
from typing import Any, Optional

from gleaner.errors import FailedPreconditionError, WorkersChanged
from gleaner.session import Session, Stats

session: Optional[Session] = None
_options: dict[str, Any] = {}  # of the last init()


def init(**options: Any) -> None:
    """Joins the job; blocks until all its members are there. Options: those of Session, all from the environment.

    A second call does nothing while the session is open. `gleaner run` sets the environment for you. A process that was
    forked after init() gets a FailedPreconditionError: it has nothing of its parent's session but the memory.
    """
    global session, _options
    if session is None or session.closed or session.inherited:
        _options = options
        session = _open(options)


def rejoin() -> None:
    """Leaves the round of an elastic job and joins the next one, with the options of init()."""
    global session
    if session is not None:
        leaving, session = session, None
        leaving.close(returning=True)
    session = _open(_options)


def _open(options: dict[str, Any]) -> Session:
    while True:
        with contextlib.suppress(WorkersChanged):  # one that was to begin with us was lost: another round follows
            return Session(**options)


def shutdown(failed: bool = False) -> None:
    """Leaves the job; waits for outstanding push_pulls unless `failed`. Does nothing without a session.

    Runs by itself at exit; then an exception that nobody caught counts as failed.
    """
    global session
    if session is not None:
        leaving, session = session, None
        leaving.close(failed)


def current() -> Session:
    """The open session; FailedPreconditionError when there is none."""
    if session is None or session.closed:
        raise FailedPreconditionError("no session: call gleaner.init() first, and not after gleaner.shutdown()")
    return session


def is_initialized() -> bool:
    return session is not None and not session.closed and not session.inherited


def rank() -> int:
    """This rank, 0 … size() - 1."""
    return current().topology.rank


def size() -> int:
    """The number of ranks of the job."""
    return current().topology.size


def local_rank() -> int:
    """This rank among those of its worker."""
    return current().topology.local_rank


def local_size() -> int:
    """The number of ranks of each worker."""
    return current().topology.local_size


def stats() -> Stats:
    """What this rank's session moved so far."""
    return current().stats()


def transports() -> str:
    """By what this worker reaches each summer: "inproc: worker/0; shm: worker/1"; empty on local ranks above 0."""
    return current().transports()


def _leave_at_exit() -> None:
    # sys.last_value is the exception that ended the program, where one did.
    shutdown(failed=getattr(sys, "last_value", None) is not None)


atexit.register(_leave_at_exit)
