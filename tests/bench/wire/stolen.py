"""Processor time that the hypervisor gave to other virtual machines while this one wanted it (steal).

A step that was disturbed in this way takes longer than by itself. It is measured again, be it ours or a peer's."""

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

LIMIT = 0.02  # of the time of all processors: a step during which more was stolen is disturbed
RUNS = 4  # at most, until enough steps were left alone, unless whoever is listening() says otherwise

Measure = TypeVar("Measure", bound=Callable[..., Steps])


def stolen_seconds(stat: Path = STAT) -> float:
    """Processor time stolen since this machine was started; 0 where the kernel does not say."""
    return processor_seconds(("steal",), stat)


class StealSampler(Sampler):
    """Samples how much processor time is stolen."""

    def __init__(self, read: Callable[[], float] = stolen_seconds, period: float = 0.1) -> None:
        super().__init__(period)
        self._read = read
        self._samples: list[tuple[float, float]] = []  # (seconds of CLOCK_MONOTONIC, seconds stolen until then)

    def __enter__(self) -> Self:
        self.look()
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self.look()

    def look(self) -> None:
        self._samples.append((time.monotonic(), self._read()))

    def share(self, begin: float = -math.inf, end: float = math.inf) -> float:
        """Of the time of all processors, what was stolen between the last sample before and the first one after."""
        before = max((each for each in self._samples if each[0] <= begin), default=self._samples[0])
        after = min((each for each in self._samples if each[0] >= end), default=self._samples[-1])
        passed = (after[0] - before[0]) * (os.cpu_count() or 1)
        return (after[1] - before[1]) / passed if passed > 0 else 0.0

    def left_alone(self, steps: Steps) -> Steps:
        shares = [self.share(begin, end) for begin, end in zip(steps.begins, steps.ends)]
        return steps.where([share <= LIMIT for share in shares])


@dataclass
class Listener:
    runs: int = RUNS
    heard: list[str] = field(default_factory=list)  # a line for each measurement that stayed disturbed


_listeners = [Listener()]  # the last one is told


@contextmanager
def listening(runs: int = RUNS) -> Iterator[list[str]]:
    """Inside the with-statement, a function that is undisturbed() runs `runs` times at most. The list gets a line for
    each measurement that stayed disturbed."""
    listener = Listener(runs)
    _listeners.append(listener)
    try:
        yield listener.heard
    finally:
        _listeners.pop()


def undisturbed(measure: Measure) -> Measure:
    """Runs `measure` until half as many steps as it measures were left alone: those steps. If that takes too many runs,
    all steps, and standard error and who is listening() are told."""

    @functools.wraps(measure)
    def again(*args: Any, **kwargs: Any) -> Steps:
        listener = _listeners[-1]
        all_steps = good = Steps([], [])
        for _ in range(listener.runs):
            with StealSampler() as sampler:
                found = measure(*args, **kwargs)
            all_steps += found
            good += sampler.left_alone(found)
            if 2 * len(good.begins) >= len(found.begins):
                return good
        told = f"{len(all_steps.begins) - len(good.begins)} of {len(all_steps.begins)} steps"
        listener.heard.append(told)
        print(f"  other virtual machines disturbed {told}", file=sys.stderr, flush=True)
        return all_steps

    return cast(Measure, again)
