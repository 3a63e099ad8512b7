"""Plots the steps of several models as one SVG. Bars are multiples of the limit with the most summers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot

matplotlib.rcParams["svg.hashsalt"] = "gleaner"  # the same figures give the same file


COLOURS = {"peer": "tab:gray", "without": "tab:cyan", "with": "tab:blue"}


def draw(models: list[dict[str, Any]], path: Path) -> None:
    """Draws the plot. `models` has the results of Result.as_json()."""
    figure, panels = pyplot.subplots(1, len(models), figsize=(2.6 * len(models) + 3, 4.2), sharey=True, squeeze=False)
    for axes, model in zip(panels[0], models):
        contests = model["contests"][::-1]
        places = range(len(contests))
        limits = [max(each["limit"].values()) for each in contests]
        axes.barh(
            places,
            [each["median"] / min(limits) for each in contests],
            color=[COLOURS[kind(each)] for each in contests],
        )
        axes.plot([limit / min(limits) for limit in limits], places, "k|", markersize=12)
        axes.set_yticks(places, [f"{each['contender']}, k = {each['summers']}" for each in contests])
        axes.set_title(f"{model['model']}, n = {model['workers']}", fontsize=10)
    figure.supxlabel("step, as a multiple of the limit with summers (|: the limit for that many)", fontsize=9)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def kind(contest: dict[str, Any]) -> str:
    if "Gloo" in contest["contender"]:
        return "peer"
    return "with" if contest["summers"] else "without"
