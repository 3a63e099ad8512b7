"""Gives JAX's CPU backend a second thread where a callback would wait for itself.

JAX copies large arguments of a callback in its pool of threads, which has one thread per CPU, and the callback itself
occupies one of them. With a single CPU the copy would never begin.
"""

from __future__ import annotations

import os


def allow_callbacks() -> None:
    """Lets JAX's pool have two threads on one CPU. Has an effect before JAX's first operation, and in child processes.

    Values of PJRT_NPROC and NPROC, from which JAX takes the number of threads, that the environment has are kept.
    """
    if len(os.sched_getaffinity(0)) < 2 and "NPROC" not in os.environ:
        os.environ.setdefault("PJRT_NPROC", "2")
