"""The exceptions of this package.

Every error of the library is a GleanerError; each status of gleaner.h has a subclass. The message names the expectation
and the deviation, and gives advice. Arguments of wrong types raise TypeError.

Every function that needs a session raises FailedPreconditionError if there is none. After a session has failed, every
function that communicates raises the cause: UnavailableError if a rank or the coordinator is lost, InvalidArgumentError
if ranks differ in the size, type or operation of a tensor, and WorkersChanged if the round of an elastic job has ended.
"""

from __future__ import annotations


class GleanerError(RuntimeError):
    """The base class of the errors of this package. Raised itself if libgleaner.so cannot be loaded."""


class InvalidArgumentError(GleanerError, ValueError):
    """An argument has a wrong value, or ranks differ in the size, type or operation of a tensor.

    A wrong value fails the call and leaves the session usable. A difference between ranks ends the session.
    """


class FailedPreconditionError(GleanerError):
    """The session, or the tensor of the call, is in a state that does not permit the call.

    Examples: there is no session before init() or after shutdown(); a forked child has no session; a tensor or a
    gradient is in flight.
    """


class DeadlineExceededError(GleanerError):
    """A time limit has passed.

    If init() raises it, the session did not open in time; the message names the event that the session was waiting for.
    If Session.synchronize() raises it, the handle stays valid, so the caller may wait again. If shutdown() raises it,
    requests were still in flight after the job's deadline.
    """


class UnavailableError(GleanerError):
    """The session has ended, because a rank or the coordinator is lost, a member did not join, or ranks are stuck."""


class PermissionDeniedError(GleanerError):
    """The token is not the token of this job."""


class ResourceExhaustedError(GleanerError):
    """Memory or file descriptors are exhausted."""


class InternalError(GleanerError):
    """Gleaner has a bug; please report it."""


class WorkersChanged(GleanerError):
    """The round of an elastic job has ended because a worker is lost or has failed; elastic.run() catches this."""


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
    """Returns the exception for a status of gleaner.h other than GLN_OK."""
    return _BY_STATUS.get(status, InternalError)(message)
