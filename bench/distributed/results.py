"""Ratios and aims of bench/collectives, from the lines of JSON that the ranks write. Pure.

A ratio is Gloo's time over Gleaner's in one round; above 1 Gleaner is faster. A case's ratio is the median over its
rounds. Below SMALL a call's time is the mean over the ranks of each rank's own call, and from there on it lasts from
the first rank's begin to the last rank's end.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any, Optional

from wire.steps import Steps, spread

SMALL = 64 << 10
AIM = 1.0
LAYER_MICROSECONDS = 60.0  # aim of the Python layer


def size_text(size: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def seconds(ranks: Sequence[dict[str, Any]], size: int) -> float:
    """Returns the median time of a round's calls, from the times of all ranks."""
    steps = Steps.of_ranks(list(ranks))
    return steps.latency if size < SMALL else steps.median


def processor_seconds(cases: Sequence[dict[str, Any]], backend: str) -> float:
    """Returns the median processor time of a call of a rank, in all threads of its process."""
    return statistics.median(used for case in cases for each in case["rounds"][backend] for used in each["processor"])


def case_entry(place: str, cases: Sequence[dict[str, Any]], aim: float) -> dict[str, Any]:
    """Returns the entry of a case in the form of wire/table.py. `cases`: the same case of all ranks."""
    first = cases[0]
    size = first["bytes"]
    entry = {"row": f"{place}: {first['collective']} {size_text(size)}", "aim": aim, "at_least": True}
    times = {
        name: [seconds([case["rounds"][name][number] for case in cases], size) for number in range(len(rounds))]
        for name, rounds in first["rounds"].items()
    }
    figures: dict[str, Any] = {name: statistics.median(each) for name, each in times.items()}
    figures |= {f"{name} processor": processor_seconds(cases, name) for name in times}
    figures |= {"rounds": len(times["gleaner"]), "calls": len(first["rounds"]["gleaner"][0]["step_begins"])}
    if "gloo" not in times:
        return {**entry, "error": f"Gloo has no such collective: {first['missing']}", "figures": figures}
    ratios = [gloo / gleaner for gloo, gleaner in zip(times["gloo"], times["gleaner"])]
    return {**entry, "ratio": statistics.median(ratios), "spread": spread(ratios), "figures": figures}


def layer_entry(place: str, collective: str, times: dict[str, list[float]]) -> dict[str, Any]:
    """Returns the entry of the Python layer: microseconds of a call by torch.distributed beyond those by the C ABI.

    It is the difference of the lower quartiles, since other load only adds time.
    """
    by_torch, by_abi = (statistics.quantiles([1e6 * each for each in times[way]], n=4) for way in ("torch", "abi"))
    return {
        "row": f"{place}: microseconds of the Python layer, {collective}",
        "aim": LAYER_MICROSECONDS,
        "at_least": False,
        "ratio": by_torch[0] - by_abi[0],
        "spread": (by_torch[2] - by_torch[0]) / 2,
        "figures": {"torch": by_torch[0], "abi": by_abi[0]},
    }


def entries(
    place: str, lines: Sequence[dict[str, Any]], aims: Optional[dict[tuple[str, int], float]] = None
) -> list[dict[str, Any]]:
    """Returns all entries of a job.

    `aims`: by collective and size, where the aim is another one than AIM.
    """
    found = []
    for cases in zip(*(line["cases"] for line in lines)):
        aim = (aims or {}).get((cases[0]["collective"], cases[0]["bytes"]), AIM)
        found.append(case_entry(place, cases, aim))
    return found + [layer_entry(place, collective, times) for collective, times in lines[0]["layers"].items()]
