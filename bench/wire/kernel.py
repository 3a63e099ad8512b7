"""Measures the sum kernel alone, by `gleaner bench sum`."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from wire import jobs


def rates(sources: int, bytes_: int) -> dict[str, Any]:
    """Returns the bytes per second of CPU time of the fp32 sum and of memcpy on one core, and their ratio."""
    command = [
        jobs.GLEANER,
        "bench",
        "sum",
        "--dtype",
        "fp32",
        "--sources",
        str(sources),
        "--bytes",
        str(bytes_),
        "--json",
    ]
    return dict(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))


def seconds_per_byte(sources: int, bytes_: int) -> float:
    """Returns the CPU time per input byte of the sum."""
    return float((sources + 1) / sources / rates(sources, bytes_)["sum_bytes_per_second"])
