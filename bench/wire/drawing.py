"""Plots the results of run_all and growth as SVG files. The same figures give the same bytes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot

matplotlib.rcParams.update({
    "svg.hashsalt": "gleaner",  # makes the identifiers within a file reproducible
    "svg.fonttype": "none",
    "figure.figsize": (6.4, 3.8),
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "savefig.bbox": "tight",
})  # fmt: skip


def save(folder: Path, name: str) -> Path:
    path = folder / f"{name}.svg"
    pyplot.legend(fontsize="small")
    pyplot.savefig(path, metadata={"Date": None, "Creator": None})
    pyplot.close()
    # Matplotlib writes trailing spaces.
    path.write_text("".join(line.rstrip() + "\n" for line in path.read_text().splitlines()))
    return path


def matching(rows: list[dict[str, Any]], pattern: str) -> list[tuple[re.Match[str], dict[str, Any]]]:
    """Returns the rows that were measured and whose whole name matches `pattern`, with the matches."""
    found = [(re.fullmatch(pattern, row["row"]), row) for row in rows if "error" not in row]
    return [(match, row) for match, row in found if match]


def efficiency(rows: list[dict[str, Any]], folder: Path) -> Path | None:
    """Plots bound over step time, by the number of summers."""
    curves = {
        "n = 4, 64 MiB": r"n=4 k=(\d+): 64 MiB",
        "n = 8, 64 MiB": r"n=8 k=(\d+): 64 MiB",
        "n = 8, ResNet50": r"n=8 k=(\d+): resnet50",
        "n = 8, VGG16": r"n=8 k=(\d+): vgg16",
        "n = 16, 16 MiB": r"n=16 k=(\d+): 16 MiB",
    }
    drawn = False
    for label, pattern in curves.items():
        points = sorted((int(match[1]), row["ratio"], row["spread"]) for match, row in matching(rows, pattern))
        if points:
            drawn = True
            k, ratio, spread = zip(*points)
            pyplot.errorbar(k, ratio, yerr=spread, label=label, marker="o", markersize=3, linewidth=1, capsize=2)
    if not drawn:
        return None
    for aim, style in ((0.985, "--"), (0.975, ":")):
        pyplot.axhline(aim, color="black", linewidth=0.8, linestyle=style, label=f"aim {aim}")
    pyplot.ylim(top=1.005)
    pyplot.xlabel("summers k")
    pyplot.ylabel("bound / step")
    return save(folder, "efficiency")


def bars(rows: list[dict[str, Any]], folder: Path) -> Path | None:
    """Plots the step times of Gleaner with and without summers, and of every peer."""
    found = {match[1]: row["figures"] for match, row in matching(rows, r"n=8 k=([08]): beside the best of .*")}
    if not found:
        return None
    peers = next(iter(found.values()))
    steps = {name: seconds for name, seconds in peers.items() if name.startswith(("gloo", "mpi"))}
    steps |= {f"gleaner, k = {k}": figures["ours"] for k, figures in found.items()}
    names = sorted(steps, key=lambda name: -steps[name])
    colors = ["tab:blue" if name.startswith("gleaner") else "tab:gray" for name in names]
    pyplot.barh(names, [steps[name] for name in names], color=colors)
    pyplot.xlabel("seconds of a step of 64 MiB, n = 8")
    pyplot.plot([], label="less is better", linestyle="none")
    return save(folder, "peers")


def latency(rows: list[dict[str, Any]], folder: Path) -> Path | None:
    """Plots the latency of one small tensor for Gleaner, the best peer and bare TCP."""
    curves: dict[str, list[tuple[float, float]]] = {}
    for _, row in matching(rows, r"n=8 k=0: .* over the best of .*"):
        figures = row["figures"]
        curves.setdefault("gleaner, n = 8", []).append((figures["bytes"], figures["ours"]))
        curves.setdefault("best of Gloo and Open MPI, n = 8", []).append((figures["bytes"], figures[figures["best"]]))
    for match, row in matching(rows, r"n=(\d+) k=0: .* over two round trips of bare TCP"):
        figures = row["figures"]
        label = f"two round trips of bare TCP, n = {match[1]}"
        curves.setdefault(label, []).append((figures["bytes"], figures["bare"]))
        if match[1] != "8":
            curves.setdefault(f"gleaner, n = {match[1]}", []).append((figures["bytes"], figures["ours"]))
    if not curves:
        return None
    for label, points in curves.items():
        sizes, seconds = zip(*sorted(points))
        pyplot.loglog(sizes, [1e6 * each for each in seconds], label=label, marker="o", markersize=3, linewidth=1)
    pyplot.xlabel("bytes of the tensor")
    pyplot.ylabel("µs of a step")
    return save(folder, "latency")


def all_of_rows(rows: list[dict[str, Any]], folder: Path) -> list[Path]:
    drawn = [draw(rows, folder) for draw in (efficiency, bars, latency)]
    return [path for path in drawn if path]


def growth(lines: list[dict[str, Any]], folder: Path) -> list[Path]:
    """Makes a plot for each growing quantity and unit. Each curve has a line of exponent 1 through its last point."""
    paths = []
    usable = [line for line in lines if "error" not in line]
    for x, unit in sorted({(line["x"], line["unit"]) for line in usable}):
        for line in (line for line in usable if (line["x"], line["unit"]) == (x, unit)):
            points = [(at, value) for at, value in line["points"] if value > 0]
            label = f"{line['line']} ({line['exponent']:.2f}, at the end {line['last_exponent']:.2f})"
            (curve,) = pyplot.loglog(*zip(*points), label=label, marker="o", markersize=3, linewidth=1)
            (x0, _), (x1, y1) = points[0], points[-1]
            pyplot.loglog([x0, x1], [y1 * x0 / x1, y1], color=curve.get_color(), linewidth=0.6, linestyle=":")
        pyplot.xlabel(x)
        pyplot.ylabel({"s": "seconds", "bytes": "bytes"}[unit])
        paths.append(save(folder, f"growth-{x}{'-bytes' if unit == 'bytes' else ''}"))
    return paths
