"""Stores results of rows as JSON, and formats them as a Markdown table for docs/benchmarks.md."""

from __future__ import annotations

import itertools
import json
import platform
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wire import processor
from wire.lab import ROOT
from wire.row import Measured, Row


def machine() -> dict[str, Any]:
    """Returns the properties of this machine and the commit on which results depend."""
    commit = subprocess.run(
        ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude", "*"], capture_output=True, text=True
    )
    return {
        **processor.here(),
        "kernel": platform.release().split("-")[0],
        "commit": commit.stdout.strip(),
    }


def result(row: Row, measured: Measured, seconds: float) -> dict[str, Any]:
    return {
        "row": row.name,
        "aim": row.aim,
        "at_least": row.at_least,
        "ratio": measured.ratio,
        "spread": measured.spread,
        "figures": measured.figures,
        "seconds": seconds,
    }


def failure(row: Row, error: Exception, seconds: float) -> dict[str, Any]:
    return {"row": row.name, "aim": row.aim, "at_least": row.at_least, "error": str(error), "seconds": seconds}


def met(entry: dict[str, Any]) -> bool:
    if "error" in entry:
        return False
    return bool(entry["ratio"] >= entry["aim"] if entry["at_least"] else entry["ratio"] <= entry["aim"])


def verdict(entry: dict[str, Any]) -> str:
    if "error" in entry:
        return f"FAILED: {entry['error']}"
    other_machines = f"  disturbed: {', '.join(entry['disturbed'])}" if "disturbed" in entry else ""
    return f"{entry['ratio']:6.4f} ± {entry['spread']:.4f}{'' if met(entry) else '  SHORT'}{other_machines}"


# The part of a row's name that varies within a family of rows: the number of summers, or a size.
VARIES = (re.compile(r"(?<=k=)\d+"), re.compile(r"\b\d+ (?:B|KiB|MiB|GiB)\b"))


def families(results: list[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yields consecutive rows that have one aim and whose names differ in one varying part, with the family's name."""
    begin = 0
    while begin < len(results):
        runs = [family_from(results, begin, pattern) for pattern in VARIES]
        name, members = max(runs, key=lambda run: len(run[1]))
        yield name, members
        begin += len(members)


def family_from(
    results: list[dict[str, Any]], begin: int, pattern: re.Pattern[str]
) -> tuple[str, list[dict[str, Any]]]:
    def shared(entry: dict[str, Any]) -> tuple[Any, ...]:
        return pattern.sub("", entry["row"], count=1), entry["aim"], entry["at_least"], "error" in entry

    first = results[begin]
    members = list(itertools.takewhile(lambda entry: shared(entry) == shared(first), results[begin:]))
    values = [found[0] for entry in members if (found := pattern.search(entry["row"]))]
    if len(values) < 2:
        return first["row"], [first]
    whole = all(value.isdigit() for value in values)
    contiguous = whole and [int(value) for value in values] == list(range(int(values[0]), int(values[-1]) + 1))
    varying = f"{values[0]} to {values[-1]}" if contiguous else ", ".join(values)
    return pattern.sub(varying, first["row"], count=1), members


def markdown(results: list[dict[str, Any]]) -> str:
    """Returns a Markdown table with a line for each family of rows. Ratios that miss the aim are bold."""
    lines = ["| | aim | measured |", "|---|---|---|"]
    for name, members in families(results):
        aim = f"{'≥' if members[0]['at_least'] else '≤'} {members[0]['aim']:g}"
        shown = "failed"
        if "error" not in members[0]:
            ratios = [f"{each['ratio']:.3f}" if met(each) else f"**{each['ratio']:.3f}**" for each in members]
            shown = f"{' '.join(ratios)} ± {max(each['spread'] for each in members):.3f}"
        disturbed = sum("disturbed" in each for each in members)
        lines.append(f"| {name} | {aim} | {shown}{f', {disturbed} disturbed' if disturbed else ''} |")
    return "\n".join(lines)


class Results:
    """The results so far. If there is a file for them, add() rewrites it after every row."""

    def __init__(self, path: Path | None, resume: Path | None, steps: int) -> None:
        self._path = path or resume
        self._steps = steps
        self.entries: list[dict[str, Any]] = []
        if resume and resume.exists():
            read = json.loads(resume.read_text())["rows"]
            self.entries = [entry for entry in read if "error" not in entry and "disturbed" not in entry]

    def has(self, row: Row) -> bool:
        return any(entry["row"] == row.name for entry in self.entries)

    def add(self, entry: dict[str, Any]) -> None:
        self.entries.append(entry)
        if self._path:
            whole = {"machine": machine(), "steps": self._steps, "rows": self.entries}
            fresh = self._path.with_suffix(".new")
            fresh.write_text(json.dumps(whole, indent=1))
            fresh.replace(self._path)

    def in_order(self, rows: list[Row]) -> list[dict[str, Any]]:
        order = {row.name: number for number, row in enumerate(rows)}
        return sorted((entry for entry in self.entries if entry["row"] in order), key=lambda each: order[each["row"]])
