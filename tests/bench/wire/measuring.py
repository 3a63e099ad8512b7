"""Rows, one after the other, each on the hosts it needs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Callable, Optional

from wire import stolen, table
from wire.lab import Lab, Setting
from wire.row import Measured, Row


class Labs:
    """One at a time, for as long as the rows ask for the same setting."""

    def __init__(self) -> None:
        self._lab: Optional[Lab] = None

    def __enter__(self) -> Labs:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def of(self, setting: Setting) -> Lab:
        if self._lab is None or self._lab.setting != setting:
            self.close()
            self._lab = Lab(setting).__enter__()
        return self._lab

    def close(self) -> None:
        lab, self._lab = self._lab, None
        if lab is not None:
            lab.__exit__(None, None, None)


def measure(
    rows: list[Row], steps: int, tell: Callable[[int, Row], None], runs: int = stolen.RUNS
) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Each with what was measured, or why it could not be: then the next one has a fresh lab. `runs`: how often steps
    are measured at most while other virtual machines disturb them."""
    with Labs() as labs:
        for number, row in enumerate(rows):
            tell(number, row)
            began = time.monotonic()
            try:
                with stolen.listening(runs) as disturbed:
                    measured: Measured = row.measure(labs.of(row.setting), steps)
                entry = table.result(row, measured, time.monotonic() - began)
                if disturbed:
                    labs.close()  # what the next row shares with this one is measured anew
                    entry["disturbed"] = disturbed
            except Exception as error:
                labs.close()
                entry = table.failure(row, error, time.monotonic() - began)
            yield row, entry
