"""Reads and writes recorded ratios, and compares measured ratios with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

MARGIN = 0.8  # least accepted share of the ratio of the record or of the parent, since the load beside them differs


def machine_of(path: Path) -> dict[str, Any]:
    """Returns the machine of the record. A record may lack some of the fields that processor.py has."""
    return dict(json.loads(path.read_text())["machine"])


def read(path: Path) -> dict[str, float]:
    return {entry["row"]: float(entry["ratio"]) for entry in json.loads(path.read_text())["rows"]}


def write(path: Path, command: str, machine: dict[str, Any], ratios: dict[str, float]) -> None:
    """Writes the ratios, with the command and the machine that produced them."""
    entries = [{"row": row, "ratio": round(ratio, 4)} for row, ratio in ratios.items()]
    path.write_text(json.dumps({"command": command, "machine": machine, "rows": entries}, indent=1) + "\n")


def too_low(ratio: float, recorded: float) -> bool:
    return ratio < MARGIN * recorded


def judge(name: str, ratio: float, base: float, of: str = "record") -> str:
    """Returns a line about a ratio beside that of the record or, as `of` says, of the parent."""
    verdict = f"below {MARGIN} of the {of}" if too_low(ratio, base) else "ok"
    return f"{name:60} {ratio:6.3f}, {of} {base:6.3f}: {verdict}"
