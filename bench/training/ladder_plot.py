"""Plots ladders as one SVG: throughput on each rung over that of the baseline, measured and published."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wire.drawing import pyplot, save

_BAR = 0.38


def draw(ladders: Sequence[dict[str, Any]], folder: Path) -> Path:
    """Draws the results of Ladder.as_json().

    Args:
        ladders: The results, one panel each.
        folder: The folder of the file ladder.svg.

    Returns:
        The file.
    """
    _, panels = pyplot.subplots(1, len(ladders), figsize=(2.2 * len(ladders) + 1.6, 3.2), sharey=True, squeeze=False)
    for axes, ladder in zip(panels[0], ladders):
        rungs = ladder["rungs"][::-1]
        places = range(len(rungs))
        spreads = [rung["ratio"] * rung["spread"] for rung in rungs]
        for offset, kind, errors in ((_BAR / 2, "ratio", spreads), (-_BAR / 2, "published", None)):
            label = "measured" if kind == "ratio" else kind
            colour = "tab:blue" if kind == "ratio" else "tab:gray"
            at = [place + offset for place in places]
            axes.barh(at, [rung[kind] for rung in rungs], _BAR, xerr=errors, label=label, color=colour)
        axes.set_yticks(places, [rung["rung"] for rung in rungs])
        axes.set_title(f"{ladder['model']}, {ladder['cluster']}", fontsize=10)
    panels[0][0].figure.supxlabel("throughput over that of the baseline", fontsize=9)
    panels[0][0].figure.tight_layout()
    return save(folder, "ladder")
