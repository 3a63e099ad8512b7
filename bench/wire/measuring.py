"""Measures rows one after the other, each on the hosts that it needs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Callable, Optional

from wire import stolen, table
from wire.lab import Lab, Setting
from wire.row import Measured, Row


class Labs:
    """Holds one lab at a time, and keeps it while the rows ask for the same setting."""

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
    """Yields each row with its result or its error. After an error the next row gets a fresh lab.

    `runs` limits how often steps are measured again because other virtual machines disturb them.
    """
    with Labs() as labs:
        for number, row in enumerate(rows):
            tell(number, row)
            began = time.monotonic()
            try:
                with stolen.limit_runs(runs) as disturbed:
                    measured: Measured = row.measure(labs.of(row.setting), steps)
                entry = table.result(row, measured, time.monotonic() - began)
                if disturbed:
                    labs.close()  # so that the next row does not reuse disturbed measurements of this one
                    entry["disturbed"] = disturbed
            except Exception as error:
                labs.close()
                entry = table.failure(row, error, time.monotonic() - began)
            yield row, entry
