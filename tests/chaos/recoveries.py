"""Computes the cost of faults in time and steps, from the coordinator's log and the end of each worker's steps."""

from __future__ import annotations

import bisect
import re
import statistics
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Optional

from faults import Event

LINE = re.compile(r"^(\d{4}-\S+Z) \w+ coordinator: (.*)$")
LOST = re.compile(r"summer \d+ at (\S+):\d+ is lost: (.*); other members take over")
COMMITTED = re.compile(r"plan committed: epoch (\d+), (.*?)(?: job=|$)")
# Seconds after the end of a fault within which the fault may still cause the loss of a summer: the time of detection,
# and some more.
LINGERS = 2.0
AT_ONCE = {"kill", "kill_all", "drain"}  # faults that end when they begin, however long the summer stays away


@dataclass
class Recovery:
    """A recovery from the loss of one summer, or of several at once."""

    at: float  # time at which the coordinator declared the first of these summers lost
    summers: list[str]
    why: str
    cause: Optional[Event]  # the fault of the first summer; None: only faults of other members affected it
    again: bool  # whether an earlier recovery has the same cause: the summer joined again during the fault
    done: float  # time at which the last worker ended the step that was running when the summer was declared lost
    longest: float  # duration of that step on the slowest worker

    @property
    def detection(self) -> Optional[float]:
        return None if self.cause is None or self.again else self.at - self.cause.begin

    @property
    def seconds(self) -> float:
        return self.done - self.at


@dataclass
class Account:
    step: float  # median duration of a step
    slowest: float
    epochs: list[tuple[float, int, str]]
    recoveries: list[Recovery]

    @property
    def epochs_rise(self) -> bool:
        numbers = [epoch for _, epoch, _ in self.epochs]
        return all(before < after for before, after in zip(numbers, numbers[1:]))


def parse_log(log: str) -> list[tuple[float, str]]:
    """Returns the time, in seconds since 1970, and the text of each line that the coordinator has logged."""
    found = [match for match in map(LINE.match, log.splitlines()) if match]
    return [(seconds_of(match.group(1)), match.group(2)) for match in found]


def shorten(text: str) -> Optional[str]:
    """Returns a short form of a log line about a lost summer or a committed or withdrawn plan; None for other lines."""
    if lost := LOST.search(text):
        return f"lost       {lost.group(1)}: {lost.group(2)[:100]}"
    if committed := COMMITTED.search(text):
        return f"epoch      {committed.group(1)}: {committed.group(2)}"
    return f"withdrawn  {text[:120]}" if "is withdrawn" in text else None


def seconds_of(stamp: str) -> float:
    return datetime.strptime(stamp, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc).timestamp()


def cause_of(address: str, at: float, events: list[Event]) -> Optional[Event]:
    """Returns the last fault of the summer at `address` that can have caused its loss, or None."""
    fitting = [
        each for each in events if address in each.addresses and each.begin - 0.1 <= at <= ends_at(each) + LINGERS
    ]
    return fitting[-1] if fitting else None


def ends_at(event: Event) -> float:
    return event.begin if event.kind in AT_ONCE else event.until


def step_after(ends: list[float], at: float) -> tuple[float, float]:
    """Returns the end and the duration of the step that was running at `at`."""
    place = min(max(bisect.bisect_right(ends, at), 1), len(ends) - 1)
    return ends[place], ends[place] - ends[place - 1]


def account(log: str, events: list[Event], workers: list[dict[str, Any]]) -> Account:
    lengths = [after - before for each in workers for before, after in zip(each["ends"], each["ends"][1:])]
    told = Account(statistics.median(lengths), max(lengths[1:]), [], [])
    seen: list[Event] = []
    for at, text in parse_log(log):
        if committed := COMMITTED.search(text):
            told.epochs.append((at, int(committed.group(1)), committed.group(2)))
        lost = LOST.search(text)
        if lost is None:
            continue
        steps = [step_after(each["ends"], at) for each in workers]
        done = max(end for end, _ in steps)
        if told.recoveries and told.recoveries[-1].done >= done:
            told.recoveries[-1].summers.append(lost.group(1))
            continue
        cause = cause_of(lost.group(1), at, events)
        again = cause in seen
        if cause is not None:
            seen.append(cause)
        longest = max(length for _, length in steps)
        told.recoveries.append(Recovery(at, [lost.group(1)], lost.group(2), cause, again, done, longest))
    return told


def describe(told: Account, began: float) -> str:
    lines = [f"{'at':>7}  {'lost':28} {'after':>22} {'detected':>9} {'recovered':>9} {'in steps':>8}  reported"]
    for each in told.recoveries:
        cause = each.cause.kind + " again" * each.again if each.cause else "no own fault"
        detection = f"{each.detection:.2f} s" if each.detection is not None else ""
        who = ", ".join(each.summers)
        steps = each.seconds / told.step
        row = f"{each.at - began:6.1f}s  {who:28} {cause:>22} {detection:>9} {each.seconds:7.2f} s {steps:8.1f}  "
        lines.append(row + each.why[:80])
    return "\n".join(lines)


def summarize(told: Account) -> list[str]:
    lines = [f"usual step {1e3 * told.step:.0f} ms, slowest {told.slowest:.2f} s; last epoch {told.epochs[-1][1]}"]
    first = [each for each in told.recoveries if each.detection is not None]
    for kind in sorted({each.cause.kind for each in first}):
        of_kind = [each for each in first if each.cause.kind == kind]
        detections = [each.detection for each in of_kind]
        steps = [each.seconds / told.step for each in of_kind]
        detected = f"detected after {statistics.median(detections):.2f} s (median), {max(detections):.2f} s (worst)"
        then = f"then {statistics.median(steps):.1f} steps (median), {max(steps):.1f} (worst)"
        took = [each.longest for each in of_kind]
        all_of_it = f"the step meanwhile took {statistics.median(took):.2f} s (median), {max(took):.2f} s (worst)"
        lines.append(f"{kind}: {len(of_kind)} recoveries; {detected}; {then}; {all_of_it}")
    return lines
