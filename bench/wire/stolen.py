"""Detects steal: CPU time that the hypervisor gave to other virtual machines while this virtual machine needed it.

A step that was disturbed by steal takes longer. Such steps are measured again, for Gleaner and for peers alike.
"""

from __future__ import annotations

import functools
import math
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Self, TypeVar, cast

from wire.sampling import STAT, Sampler, processor_seconds
from wire.steps import Steps

LIMIT = 0.02  # largest share of stolen CPU time, over all processors, of an undisturbed step
RUNS = 4  # default limit of runs until enough steps are undisturbed; limit_runs() sets another one

Measure = TypeVar("Measure", bound=Callable[..., Steps])


def stolen_seconds(stat: Path = STAT) -> float:
    """Returns the CPU time stolen since boot, or 0 if the kernel does not count it."""
    return processor_seconds(("steal",), stat)


class StealSampler(Sampler):
    """Samples the stolen CPU time."""

    def __init__(self, read: Callable[[], float] = stolen_seconds, period: float = 0.1) -> None:
        super().__init__(period)
        self._read = read
        self._samples: list[tuple[float, float]] = []  # (seconds of CLOCK_MONOTONIC, stolen seconds until then)

    def __enter__(self) -> Self:
        self.sample()
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self.sample()

    def sample(self) -> None:
        self._samples.append((time.monotonic(), self._read()))

    def share(self, begin: float = -math.inf, end: float = math.inf) -> float:
        """Returns the share of stolen CPU time, from the last sample before `begin` to the first one after `end`."""
        before = max((each for each in self._samples if each[0] <= begin), default=self._samples[0])
        after = min((each for each in self._samples if each[0] >= end), default=self._samples[-1])
        passed = (after[0] - before[0]) * (os.cpu_count() or 1)
        return (after[1] - before[1]) / passed if passed > 0 else 0.0

    def undisturbed_steps(self, steps: Steps) -> Steps:
        shares = [self.share(begin, end) for begin, end in zip(steps.begins, steps.ends)]
        return steps.where([share <= LIMIT for share in shares])


@dataclass
class RunLimit:
    runs: int = RUNS
    disturbed: list[str] = field(default_factory=list)  # one line per measurement that stayed disturbed


_limits = [RunLimit()]  # a stack; undisturbed() reports to the last one


@contextmanager
def limit_runs(runs: int = RUNS) -> Iterator[list[str]]:
    """Limits functions decorated by undisturbed() to `runs` runs, inside the with-statement.

    Yields a list, to which each measurement that stays disturbed appends a line.
    """
    limit = RunLimit(runs)
    _limits.append(limit)
    try:
        yield limit.disturbed
    finally:
        _limits.pop()


def undisturbed(measure: Measure) -> Measure:
    """Decorates `measure` to repeat disturbed steps.

    Runs `measure` until the undisturbed steps are at least half as many as the steps of one run, and returns these. If
    the limit of runs is reached first, returns all steps, and reports that to standard error and to the innermost
    limit_runs()."""

    @functools.wraps(measure)
    def again(*args: Any, **kwargs: Any) -> Steps:
        limit = _limits[-1]
        all_steps = good = Steps([], [])
        for _ in range(limit.runs):
            with StealSampler() as sampler:
                found = measure(*args, **kwargs)
            all_steps += found
            good += sampler.undisturbed_steps(found)
            if 2 * len(good.begins) >= len(found.begins):
                return good
        told = f"{len(all_steps.begins) - len(good.begins)} of {len(all_steps.begins)} steps"
        limit.disturbed.append(told)
        print(f"  other virtual machines disturbed {told}", file=sys.stderr, flush=True)
        return all_steps

    return cast(Measure, again)
