"""Lets ranks wait for each other's steps outside Gleaner. Each rank has a file with one byte for each of its steps."""

from __future__ import annotations

import time
from pathlib import Path


class Marks:
    def __init__(self, folder: Path, rank: int, ranks: int) -> None:
        self._own = folder / f"rank{rank}"
        self._others = [folder / f"rank{other}" for other in range(ranks) if other != rank]

    def mark(self) -> None:
        """Marks a step of this rank."""
        with self._own.open("ab") as file:
            file.write(b".")

    def wait_for_others(self, steps: int) -> None:
        """Waits until every other rank has marked this many steps."""
        while any(not file.exists() or file.stat().st_size < steps for file in self._others):
            time.sleep(0.002)
