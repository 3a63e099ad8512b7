"""Folders in memory (/dev/shm) that belong to one process. A new owner removes the folders whose owners have ended."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

PARENT = Path("/dev/shm")
LOCK = "owner.lock"  # locked by the owner for as long as it lives


class OwnedFolder:
    def __init__(self, prefix: str) -> None:
        remove_abandoned(prefix)
        # The folder gets its name only when it has a locked lock file, since others remove folders of this prefix
        # without one.
        half = Path(tempfile.mkdtemp(prefix=f".{prefix}", dir=PARENT))
        self._lock = os.open(half / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.path = PARENT / half.name[1:]
        half.rename(self.path)

    def release(self, keep: bool = False) -> None:
        if not keep:
            shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def remove_abandoned(prefix: str) -> None:
    for folder in PARENT.glob(f"{prefix}*"):
        try:
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            pass
        finally:
            os.close(lock)
