"""Identifies a machine's processor, so that ratios of speed are compared only between equal processors."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

# The name may stand for several generations ("AMD EPYC"), so the numbers say more. Arm has no name, and other numbers.
FIELDS = {"model": ["model name"], "family": ["cpu family", "CPU implementer"], "model_number": ["model", "CPU part"]}


def identify(cpuinfo: str, count: int) -> dict[str, Any]:
    """Returns the number of processors, and those of the FIELDS that the text of /proc/cpuinfo has."""
    pairs = [line.split(":", 1) for line in cpuinfo.splitlines() if ":" in line]
    values: dict[str, str] = {}
    for name, value in pairs:
        values.setdefault(name.strip(), value.strip())
    found = {field: values[name] for field, names in FIELDS.items() for name in names if name in values}
    numbers = {field: int(value, 0) for field, value in found.items() if field != "model"}
    return {"processors": count, "model": found.get("model", platform.machine()), **numbers}


def here() -> dict[str, Any]:
    return identify(Path("/proc/cpuinfo").read_text(), os.cpu_count() or 1)


def is_same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Returns whether both machines have equal processors, equally many. A number that one of them lacks counts as
    equal, since old records have only the name."""
    return all(
        one.get(field) == other.get(field)
        for field in ("processors", *FIELDS)
        if field in ("processors", "model") or (field in one and field in other)
    )


def describe(machine: dict[str, Any]) -> str:
    """Returns a text such as "2 x AMD EPYC (family 25, model 17)"."""
    numbers = [f"{word} {machine[field]}" for field, word in (("family", "family"), ("model_number", "model"))
               if field in machine]  # fmt: skip
    return f"{machine.get('processors')} x {machine.get('model')}" + (f" ({', '.join(numbers)})" if numbers else "")
