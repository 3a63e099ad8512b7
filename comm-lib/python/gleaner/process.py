"""The global session of a process, and the public functions without arrays, which gleaner and gleaner.torch share.

This module holds the global session of the package and its options. All other code takes sessions as arguments. init(),
rejoin() and shutdown() must be called from one thread at a time.
"""

from __future__ import annotations

import atexit
import contextlib
import sys
from typing import Any, Optional

from gleaner import exchange
from gleaner.errors import FailedPreconditionError, GleanerError, WorkersChanged
from gleaner.interruptible import wait_for_calls
from gleaner.session import Session, Stats

session: Optional[Session] = None
_options: dict[str, Any] = {}  # the options of the last init()

# How long the exit of the process waits for an init() or shutdown() that was interrupted.
_EXIT_SECONDS = 5.0


def init(**options: Any) -> None:
    """Joins the job and opens the process's session. Collective; blocks until all members of the job have joined.

    Does nothing if the session is open. `gleaner run` sets all environment variables that init() needs.

    Args:
        **options: Arguments of Session. Omitted arguments come from environment variables (docs/cli.md#environment),
            then from defaults.

    Raises:
        InvalidArgumentError: An option or an environment variable is missing or wrong.
        UnavailableError: The coordinator cannot be reached, the job has failed, or members have not joined within the
            coordinator's --start-timeout or this rank's `open_timeout`; the coordinator's message names them.
        DeadlineExceededError: The session has not opened 5 seconds after `open_timeout`.
        PermissionDeniedError: The token is not the token of the job.
        FailedPreconditionError: This process was forked from a process that had opened a session.
        GleanerError: libgleaner.so cannot be loaded.
    """
    global session, _options
    if session is None or session.closed or session.inherited:
        _options = options
        session = _open(options)


def rejoin() -> None:
    """Leaves the round of an elastic job and blocks until the next round begins. Uses the options of init().

    Raises:
        GleanerError: The errors of init().
    """
    global session
    leave_round()
    session = _open(_options)


def leave_round() -> None:
    """Leaves the round of an elastic job, whose next round waits for this process and its rejoin().

    Raises:
        GleanerError: The errors of Session.close().
    """
    global session
    if session is not None:
        leaving, session = session, None
        leaving.close(returning=True)


def _open(options: dict[str, Any]) -> Session:
    while True:
        with contextlib.suppress(WorkersChanged):  # a worker was lost before this round began: join the next round
            return Session(**options)


def shutdown(failed: bool = False) -> None:
    """Leaves the job and closes the session. Does nothing without a session.

    The package calls it when the process exits, with `failed` if an uncaught exception ended the program.

    Args:
        failed: True: tells the job that this rank ended in error, and does not wait. False: waits for outstanding
            requests, up to the job's deadline, and until no other rank needs this rank's summer. If the program has
            used accumulate(), it also waits until all ranks call shutdown(), without a time limit.

    Raises:
        DeadlineExceededError: Requests are still in flight after the job's deadline.
        GleanerError: The session has failed before. If `failed` is True, the function raises no error of the session.
    """
    global session
    if session is not None:
        leaving, session = session, None
        leaving.close(failed)


def current() -> Session:
    """Returns the open session.

    Raises:
        FailedPreconditionError: There is no session: before init() or after shutdown().
    """
    if session is None or session.closed:
        raise FailedPreconditionError("no session: call gleaner.init() first, and not after gleaner.shutdown()")
    return session


def is_initialized() -> bool:
    """Returns whether init() has opened a session in this process that is still open. Any thread may call it."""
    return session is not None and not session.closed and not session.inherited


def rank() -> int:
    """Returns this process's rank, 0 to size() - 1. Any thread may call it.

    Raises:
        FailedPreconditionError: There is no session.
    """
    return current().rank_info.rank


def size() -> int:
    """Returns the number of ranks of the job. Any thread may call it.

    Raises:
        FailedPreconditionError: There is no session.
    """
    return current().rank_info.size


def local_rank() -> int:
    """Returns this process's rank within its worker, 0 to local_size() - 1. Any thread may call it.

    Raises:
        FailedPreconditionError: There is no session.
    """
    return current().rank_info.local_rank


def local_size() -> int:
    """Returns the number of ranks of each worker. Any thread may call it.

    Raises:
        FailedPreconditionError: There is no session.
    """
    return current().rank_info.local_size


def stats() -> Stats:
    """Returns the communication statistics of this rank since init(). Any thread may call it.

    Raises:
        FailedPreconditionError: There is no session.
    """
    return current().stats()


def transports() -> str:
    """Returns the transport by which this worker reaches each summer, such as "inproc: worker/0; shm: worker/1".

    Empty on local ranks above 0. Any thread may call it.

    Raises:
        FailedPreconditionError: There is no session.
    """
    return current().transports()


def tensor_plan(name: str) -> dict[str, Any]:
    """Returns how the job sums the tensor of this name. Its bits follow from that (docs/bench-data.md).

    Any thread may call it.

    Args:
        name: Name of a tensor that this rank has passed to push_pull() or another request.

    Returns:
        A dict with the fields of gln_get_tensor_plan() in gleaner.h, among them: "algorithm", which is "summers" or
        that of a schedule; "stages", "radix" and "ranks" (each worker's rank in the schedule; empty: worker i has rank
        i); "partition_bytes", the size of each partition in order; and "from", the number of the first push_pull of
        the tensor that is summed so.

    Raises:
        InvalidArgumentError: This rank has declared no tensor of this name.
        FailedPreconditionError: No plan has the tensor yet, since its first push_pull has not ended; or there is no
            session.
    """
    return current().tensor_plan(name)


def poll(handle: int) -> bool:
    """Returns whether a request is done, so that synchronize(handle) would not block. Any thread may call it.

    Args:
        handle: Handle of a function whose name ends in _async, or of push_pull_async_inplace().

    Raises:
        InvalidArgumentError: The handle is unknown, or was synchronized before.
        FailedPreconditionError: There is no session.
    """
    return current().poll(handle)


def broadcast_object(value: Any, root_rank: int = 0) -> Any:
    """Copies an object of rank `root_rank` to all ranks with pickle. Collective; blocks.

    May be called from one thread at a time.

    Args:
        value: Object that can be pickled. The values that other ranks pass are ignored.
        root_rank: Rank whose object is copied; the same on all ranks.

    Returns:
        `value` itself on rank `root_rank`; a copy of the root's `value` on the other ranks.

    Raises:
        InvalidArgumentError: `root_rank` is not a rank (only this rank raises this), or ranks pass different roots (all
            ranks raise this).
        GleanerError: There is no session, or it has failed; see gleaner.errors.
    """
    return exchange.broadcast_object(current(), value, root_rank)


def _leave_at_exit() -> None:
    # sys.last_value is set if an uncaught exception ended the program.
    try:
        shutdown(failed=getattr(sys, "last_value", None) is not None)
    except GleanerError as error:
        # No caller is left that could catch the error. The program may have handled it before.
        print(f"gleaner: this rank left the job after an error: {error}", file=sys.stderr, flush=True)
    finally:
        wait_for_calls(_EXIT_SECONDS)


atexit.register(_leave_at_exit)
