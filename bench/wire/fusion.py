"""Rows about packs of gradients: DistributedOptimizer with `fusion_bytes`, beside the same without and one tensor."""

from __future__ import annotations

import json
from pathlib import Path

from wire.lab import ROOT, Lab, Setting
from wire.orders import run
from wire.row import JOB_SECONDS, MIB, Measured, Row, quotient
from wire.steps import Steps

MANY, SMALL = 1000, 4096
PACKS = Setting(2, 0)
FAST = Setting(2, 0, rate="2gbit")
LOOPBACK = Setting(2, 0, rate="")
PACKED = {"packs of 1 MiB": MIB, "packs by auto": "auto"}
MODELS = {"resnet50": 0.8, "vgg16": 4.0}  # with approximate seconds of a step, for estimates


def backward(lab: Lab, path: Path, fusion_bytes: object, steps: int) -> Steps:
    return run(lab.part(2, 0), "parameters.py", [path, fusion_bytes, steps], [])


def equal_parameters(folder: Path, count: int, bytes_: int) -> Path:
    """Writes a list of `count` parameters, and returns its file."""
    path = folder / f"{count}.json"
    path.write_text(json.dumps([{"name": f"p{number}", "bytes": bytes_} for number in range(count)]))
    return path


def small_row(packs: str) -> Row:
    def measure(lab: Lab, steps: int) -> Measured:
        many = equal_parameters(lab.folder, MANY, SMALL)
        one = backward(lab, equal_parameters(lab.folder, 1, MANY * SMALL), None, steps)
        alone, packed = (backward(lab, many, fusion_bytes, steps) for fusion_bytes in (None, PACKED[packs]))
        figures = {"one": one.median, "in packs": packed.median, "each on its own": alone.median}
        return quotient(one, packed, figures)

    return Row(f"n=2 k=0: one parameter of 4 MB over 1,000 of 4 KiB in {packs}", 0.9, PACKS, measure,
               lambda steps: 3 * (JOB_SECONDS + 0.4 * (steps + 5)))  # fmt: skip


def model_row(packs: str, setting: Setting, model: str, seconds: float) -> Row:
    def measure(lab: Lab, steps: int) -> Measured:
        path = ROOT / "examples" / "models" / f"{model}.json"
        alone, packed = (backward(lab, path, fusion_bytes, steps) for fusion_bytes in (None, PACKED[packs]))
        return quotient(alone, packed, {"each on its own": alone.median, "in packs": packed.median})

    where = " on the loopback" if setting.loopback else " at 2 Gbit/s"
    return Row(f"n=2 k=0{where}: {model}'s gradients each on its own, over {packs}", 1.0, setting, measure,
               lambda steps: 2 * (JOB_SECONDS + seconds * (steps + 5)))  # fmt: skip


def rows() -> list[Row]:
    models = [
        model_row(packs, setting, *each) for setting in (FAST, LOOPBACK) for each in MODELS.items() for packs in PACKED
    ]
    return [*map(small_row, PACKED), *models]
