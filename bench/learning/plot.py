"""Plots learning curves as SVG. The same figures give the same bytes."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Optional

from wire.drawing import pyplot, save

from learning.results import Results, Setting


def draw(results: Results, setting: Setting, metric: str, modes: Sequence[str], folder: Path) -> Optional[Path]:
    """Draws the mean over seeds of a metric after each epoch, and a band from the least to the largest value.

    Args:
        results: The runs.
        setting: The setting of the runs to draw.
        metric: A field of their points.
        modes: The modes, one line each.
        folder: The folder of the file learning-MODEL.svg.

    Returns:
        The file; None if there is no run.
    """
    drawn = False
    for mode in modes:
        curves = [[point[metric] for point in run.curve] for run in results.of(setting, mode)]
        if not curves:
            continue
        drawn = True
        epochs = range(1, setting.epochs + 1)
        at_epoch = list(zip(*curves))
        pyplot.plot(epochs, [statistics.mean(each) for each in at_epoch], label=mode, linewidth=1.2)
        pyplot.fill_between(epochs, [min(each) for each in at_epoch], [max(each) for each in at_epoch], alpha=0.15)
    if not drawn:
        return None
    pyplot.gca().xaxis.get_major_locator().set_params(integer=True)
    pyplot.xlabel("epoch")
    pyplot.ylabel(metric.replace("_", " "))
    pyplot.title(f"{setting.model}, {setting.ranks} ranks", fontsize=10)
    return save(folder, f"learning-{setting.model}")
