"""What was measured, as it is kept (JSON) and as docs show it (a table in Markdown)."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from wire.lab import ROOT
from wire.row import Measured, Row


def machine() -> dict[str, Any]:
    """What the figures hang on."""
    models = [line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
              if line.startswith("model name")]  # fmt: skip
    commit = subprocess.run(
        ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude", "*"], capture_output=True, text=True
    )
    return {
        "processors": os.cpu_count(),
        "model": models[0] if models else platform.machine(),
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


def markdown(results: list[dict[str, Any]]) -> str:
    lines = ["| | aim | measured | |", "|---|---|---|---|"]
    for entry in results:
        aim = f"{'≥' if entry['at_least'] else '≤'} {entry['aim']:g}"
        shown = "failed" if "error" in entry else f"{entry['ratio']:.3f} ± {entry['spread']:.3f}"
        judged = f"{'met' if met(entry) else 'short'}{', disturbed' if 'disturbed' in entry else ''}"
        lines.append(f"| {entry['row']} | {aim} | {shown} | {judged} |")
    return "\n".join(lines)


class Results:
    """Kept in a file after every row, if there is one."""

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
