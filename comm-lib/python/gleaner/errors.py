"""What the library can answer, as exceptions.

Every error is a GleanerError; a subclass exists for each status of gleaner.h. The text is the library's own message:
what was expected, what came, and what to do.
"""

from __future__ import annotations


class GleanerError(RuntimeError):
    """Base of all errors of this package."""


class InvalidArgumentError(GleanerError, ValueError):
    """The call itself is wrong."""


class FailedPreconditionError(GleanerError):
    """The call comes at the wrong time: before init, after shutdown, or while its tensor is in flight."""


class DeadlineExceededError(GleanerError):
    """Not done in time. For a push_pull: wait again. For init: the message says who is missing."""


class UnavailableError(GleanerError):
    """A peer or the coordinator is lost; the session is dead."""


class PermissionDeniedError(GleanerError):
    """The token is not the job's."""


class ResourceExhaustedError(GleanerError):
    """Out of memory or file descriptors."""


class InternalError(GleanerError):
    """A bug in Gleaner; please report it."""


class WorkersChanged(GleanerError):
    """A worker of an elastic job is lost, and the others go on without it. gleaner.torch.elastic.run catches this."""


_BY_STATUS: dict[int, type[GleanerError]] = {
    1: InvalidArgumentError,
    2: FailedPreconditionError,
    3: DeadlineExceededError,
    4: UnavailableError,
    5: PermissionDeniedError,
    6: ResourceExhaustedError,
    7: InternalError,
    8: WorkersChanged,
}


def error_of(status: int, message: str) -> GleanerError:
    """The exception for a status of gleaner.h other than GLN_OK."""
    return _BY_STATUS.get(status, InternalError)(message)
