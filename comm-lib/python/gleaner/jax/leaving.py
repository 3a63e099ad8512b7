"""Leaves the job when callbacks of compiled programs are over.

JAX may run a compiled program after the call that started it has returned, and so call Gleaner later.
"""

from __future__ import annotations

import atexit
import contextlib
import sys

import jax

from gleaner import process


def shutdown(failed: bool = False) -> None:
    """Leaves the job, as gleaner.shutdown(). Waits for all compiled programs before, unless `failed` is True.

    Raises:
        jax.errors.JaxRuntimeError: A callback has failed. The rank has left the job in error then.
        GleanerError: As gleaner.shutdown().
    """
    if not failed:
        try:
            jax.effects_barrier()
        except Exception:
            process.shutdown(failed=True)
            raise
    process.shutdown(failed)


def _wait_for_callbacks_at_exit() -> None:
    # sys.last_value is set if an uncaught exception ended the program.
    if process.is_initialized() and getattr(sys, "last_value", None) is None:
        with contextlib.suppress(Exception):  # JAX reports the errors of callbacks at exit, too
            jax.effects_barrier()


# Runs before the function that gleaner.process has registered, which leaves the job.
atexit.register(_wait_for_callbacks_at_exit)
