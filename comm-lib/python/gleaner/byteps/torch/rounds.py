"""suspend() and resume(), with which BytePS changes the number of workers, and the numbers of ranks.

suspend() and resume() need an elastic job. Between the two the numbers are those of the round that has ended.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Optional

from gleaner import process
from gleaner.errors import FailedPreconditionError
from gleaner.session import RankInfo
from gleaner.torch.cross_barrier import UpdatesInForward
from gleaner.torch.gradients import Gradients
from gleaner.torch.passes import Passes


@dataclass(frozen=True)
class _Suspended:
    """The numbers of the round that a process has left, and the gradients of its optimizers and models."""

    numbers: RankInfo
    gradients: list[Gradients]


_suspended: Optional[_Suspended] = None  # from suspend() to resume()


def _numbers() -> RankInfo:
    is_open = process.is_initialized()
    return _suspended.numbers if _suspended is not None and not is_open else process.current().rank_info


def rank() -> int:
    """Returns this process's rank, 0 to size() - 1. Raises FailedPreconditionError if there is no session."""
    return _numbers().rank


def size() -> int:
    """Returns the number of ranks of the job. Raises FailedPreconditionError if there is no session."""
    return _numbers().size


def local_rank() -> int:
    """Returns this process's rank within its worker. Raises FailedPreconditionError if there is no session."""
    return _numbers().local_rank


def local_size() -> int:
    """Returns the number of ranks of each worker. Raises FailedPreconditionError if there is no session."""
    return _numbers().local_size


def suspend() -> None:
    """Leaves the round of an elastic job. Until resume() no other function may communicate.

    Every rank that goes on must call suspend(), after the same step.

    Raises:
        GleanerError: There is no session, or it has failed; see gleaner.errors.
    """
    global _suspended
    session = process.current()
    gradients = [each for each in session.attached(Passes).optimizers() if isinstance(each, Gradients)]
    for each in gradients:
        optimizer = each.optimizer()
        if isinstance(optimizer, UpdatesInForward):
            optimizer.update_overdue()
    process.leave_round()
    _suspended = _Suspended(session.rank_info, gradients)


def resume(num_workers: int, num_servers: int, global_rank: int, context: Any = None) -> None:
    """Joins the next round of an elastic job, and blocks until that begins. rank() and size() are then its.

    Optimizers and models of before average gradients again. Ranks must agree on parameters and optimizer states before
    the next step, as by broadcast_parameters() and broadcast_optimizer_state().

    Args:
        num_workers: Number of workers that the program expects. The coordinator decides; a warning tells if it has
            decided otherwise.
        num_servers: Has no effect.
        global_rank: Has no effect: the coordinator numbers the ranks.
        context: Has no effect.

    Raises:
        FailedPreconditionError: The job is not elastic.
        GleanerError: As in gleaner.torch.init().
    """
    global _suspended
    try:
        process.rejoin()
    except FailedPreconditionError as error:
        raise FailedPreconditionError(
            f"{error}; suspend() and resume() need an elastic job: start it with --min-workers or --max-workers"
        ) from None
    suspended, _suspended = _suspended, None
    for each in suspended.gradients if suspended is not None else ():
        each.move_to(process.current())
    workers = process.current().rank_info.workers
    if workers != num_workers:
        warnings.warn(f"resume() expected {num_workers} workers, and the job has {workers} now", stacklevel=2)
