"""Results of learning curves: a file of runs, to which other runs may be added on other days, and their table."""

from __future__ import annotations

import csv
import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

VERSION = 1  # of the file


@dataclass(frozen=True)
class Setting:
    """The conditions of a model's training, alike in all modes and for all seeds. Runs of one setting are compared."""

    model: str
    ranks: int
    epochs: int
    data: str  # SHA-256


@dataclass(frozen=True)
class Run:
    """One training. Runs with the same setting, mode and seed replace each other.

    Attributes:
        setting: The setting.
        mode: Name of the mode.
        seed: Seed of the parameters and of the order of examples.
        torch: Version of PyTorch.
        machine: Result of wire.table.machine().
        curve: One point after each epoch; worker.curve() says what it has.
    """

    setting: Setting
    mode: str
    seed: int
    torch: str
    machine: dict[str, Any]
    curve: list[dict[str, float]]

    @property
    def key(self) -> tuple[Setting, str, int]:
        return self.setting, self.mode, self.seed


class Results:
    """The runs of a file, which add() rewrites.

    Args:
        path: The file, which need not exist.

    Raises:
        ValueError: The file has another version.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._runs: dict[tuple[Setting, str, int], Run] = {}
        if path.exists():
            read = json.loads(path.read_text())
            if read.get("version") != VERSION:
                raise ValueError(f"{path} is not of version {VERSION}: write to another file, or move it away")
            for each in read["runs"]:
                run = Run(**{**each, "setting": Setting(**each["setting"])})
                self._runs[run.key] = run

    def add(self, runs: Iterable[Run]) -> None:
        self._runs.update({run.key: run for run in runs})
        fresh = self._path.with_suffix(".new")
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(
            json.dumps({"version": VERSION, "runs": [asdict(run) for run in self._runs.values()]}, indent=1)
        )
        fresh.replace(self._path)

    def of(self, setting: Setting, mode: str) -> list[Run]:
        """Returns the runs of a mode by seed."""
        found = [run for run in self._runs.values() if run.setting == setting and run.mode == mode]
        return sorted(found, key=lambda run: run.seed)

    def settings(self) -> list[Setting]:
        """Returns the settings of all runs, each once."""
        return list(dict.fromkeys(run.setting for run in self._runs.values()))

    def write_csv(self, path: Path) -> None:
        """Writes a line for each point of each run."""
        with path.open("w", newline="") as file:
            lines = csv.writer(file)
            names = ["epoch", "train_loss", "test_loss", "test_accuracy"]
            lines.writerow(["model", "mode", "seed", "ranks", *names])
            for run in self._runs.values():
                for point in run.curve:
                    setting = run.setting
                    lines.writerow([setting.model, run.mode, run.seed, setting.ranks, *(point[name] for name in names)])


def finals(runs: Sequence[Run], metric: str) -> dict[int, float]:
    """Returns the last value of a metric by seed, accuracies in percent."""
    factor = 100 if metric == "test_accuracy" else 1
    return {run.seed: factor * run.curve[-1][metric] for run in runs}


def mean_and_deviation(values: Sequence[float], sign: str = "") -> str:
    """Returns the mean ± the sample standard deviation, or the only value."""
    spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):{sign}.2f}{spread}"


def lines(results: Results, setting: Setting, metric: str, modes: Sequence[str]) -> list[str]:
    """Returns a line of the table for each mode of a model that has runs. The first mode is compared with."""
    unit = "accuracy, %" if metric == "test_accuracy" else "loss, nats"
    base = finals(results.of(setting, modes[0]), metric)
    made = []
    for mode in modes:
        found = finals(results.of(setting, mode), metric)
        if not found:
            continue
        pairs = [value - base[seed] for seed, value in found.items() if seed in base]
        change = mean_and_deviation(pairs, "+") if pairs and mode != modes[0] else ""
        shown = mean_and_deviation(list(found.values()))
        made.append(f"| {setting.model} ({unit}) | {mode} | {len(found)} | {shown} | {change} |")
    return made


def heading(first: str) -> list[str]:
    return [f"| model | mode | seeds | final test | change from {first}, by seed |", "|---|---|---|---|---|"]
