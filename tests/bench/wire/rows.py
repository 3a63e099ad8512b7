"""What run_all measures: each row is a ratio, taken in one run, beside the ratio aimed at."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

from wire import jobs, peers
from wire.lab import ROOT, Lab
from wire.steps import Steps

MIB = 1 << 20
STEP = 64 * MIB  # per worker
WORKERS, RATE = 8, "200mbit"


@dataclass
class Measured:
    """`ratio` is what the aim speaks of; `figures` are what it was made from, in seconds unless named otherwise."""

    ratio: float
    spread: float
    figures: dict[str, Any] = field(default_factory=dict)


@dataclass
class Row:
    name: str
    aim: float
    measure: Callable[[int], Measured]  # with so many steps
    at_least: bool = True  # else the ratio is to be at most the aim

    def met(self, ratio: float) -> bool:
        return ratio >= self.aim if self.at_least else ratio <= self.aim


def efficiency(
    workers: int,
    summers: int,
    rate: str = RATE,
    tensors: Optional[list[str]] = None,
    burst: str = "128kb",
    rates: Optional[dict[str, str]] = None,
) -> Callable[[int], Measured]:
    """Bound over median step."""
    listed = tensors or ["--bytes", str(STEP)]

    def measure(steps: int) -> Measured:
        with Lab(workers, summers, rate, burst, rates) as lab:
            found = jobs.measure(lab, listed, steps)
            best = jobs.bound(lab, listed)
            figures = {"bound": best, "step": found.median, "payload_bits_per_second": lab.payload()}
            return Measured(best / found.median, found.spread, figures)

    return measure


def model(name: str) -> list[str]:
    return ["--tensors", str(ROOT / "examples" / "models" / f"{name}.json")]


def every_gloo(lab: Lab, tensors: list[int], steps: int) -> dict[str, Steps]:
    return {f"gloo {name}": peers.gloo(lab, name, tensors, steps) for name in peers.GLOO}


def every_peer(lab: Lab, tensors: list[int], steps: int) -> dict[str, Steps]:
    return every_gloo(lab, tensors, steps) | {f"mpi {name}": peers.mpi(lab, name, tensors, steps) for name in peers.MPI}


def quotient(dividend: Steps, divisor: Steps, figures: dict[str, Any]) -> Measured:
    return Measured(dividend.median / divisor.median, max(dividend.spread, divisor.spread), figures)


def best_of(others: dict[str, Steps], ours: Steps) -> tuple[Steps, dict[str, Any]]:
    """The fastest of the others, and the figures of all."""
    name = min(others, key=lambda name: others[name].median)
    figures = {"ours": ours.median, "best": name, **{other: found.median for other, found in others.items()}}
    return others[name], figures


def beside_peers(workers: int, summers: int, rate: str = RATE) -> Callable[[int], Measured]:
    """The best peer's step over ours, all in one lab."""

    def measure(steps: int) -> Measured:
        with Lab(workers, summers, rate) as lab:
            others = every_peer(lab, [STEP], max(3, steps // 2))
            ours = jobs.measure(lab, ["--bytes", str(STEP)], steps)
            best, figures = best_of(others, ours)
            return quotient(best, ours, figures)

    return measure


def latency(bytes_: int) -> Callable[[int], Measured]:
    """Ours over the best peer's, for one small tensor; no summers: what a user of the peer has."""

    def measure(steps: int) -> Measured:
        many = 20 * steps
        with Lab(WORKERS, 0, RATE) as lab:
            others = every_peer(lab, [bytes_], many)
            ours = jobs.measure(lab, ["--bytes", str(bytes_)], many)
            best, figures = best_of(others, ours)
            return quotient(ours, best, figures)

    return measure


def many_small(count: int, bytes_: int) -> Callable[[int], Measured]:
    """The best of Gloo with the same list over ours."""

    def measure(steps: int) -> Measured:
        with Lab(WORKERS, 0, RATE) as lab:
            path = write_list(lab.folder, count, bytes_)
            others = every_gloo(lab, [bytes_] * count, max(3, steps // 2))
            ours = jobs.measure(lab, ["--tensors", str(path)], steps)
            best, figures = best_of(others, ours)
            return quotient(best, ours, figures)

    return measure


def fused(count: int, bytes_: int) -> Callable[[int], Measured]:
    """One tensor of the same bytes over many small ones, both ours."""

    def measure(steps: int) -> Measured:
        with Lab(WORKERS, 0, RATE) as lab:
            path = write_list(lab.folder, count, bytes_)
            many = jobs.measure(lab, ["--tensors", str(path)], steps)
            one = jobs.measure(lab, ["--bytes", str(count * bytes_)], steps)
            return quotient(one, many, {"one": one.median, "many": many.median})

    return measure


def write_list(folder: Path, count: int, bytes_: int) -> Path:
    path = folder / "tensors.json"
    path.write_text(json.dumps([{"name": f"t{i}", "bytes": bytes_} for i in range(count)]))
    return path


def local_ranks(ranks: int) -> Callable[[int], Measured]:
    """A step with one rank per host over one with several, the bytes on the wire being the same."""

    def measure(steps: int) -> Measured:
        with Lab(WORKERS, WORKERS, RATE) as lab:
            one = jobs.measure(lab, ["--bytes", str(STEP)], steps)
            more = jobs.measure(lab, ["--bytes", str(STEP)], steps, local_ranks=ranks)
            return quotient(one, more, {"one": one.median, "more": more.median})

    return measure


def half(kind: str, count: int, rate: str) -> dict[str, str]:
    return {f"{kind}{i}": rate for i in range(count)}


def rows() -> list[Row]:
    table = [Row(f"n=8 k={k}: one tensor of 64 MiB", 0.985, efficiency(WORKERS, k)) for k in range(WORKERS + 1)]
    for name in ("vgg16", "resnet50"):
        table += [Row(f"n=8 k={k}: {name}", 0.975, efficiency(WORKERS, k, tensors=model(name))) for k in (0, 4, 8)]
    table += [
        Row("n=8 k=0 beside the best of Gloo and Open MPI", 1.02, beside_peers(WORKERS, 0)),
        Row("n=8 k=8 beside the best of Gloo and Open MPI", 1.75, beside_peers(WORKERS, 8)),
        Row("n=8 k=8: half of the summers at half speed", 0.975, efficiency(8, 8, rates=half("summer", 4, "100mbit"))),
        Row("n=8 k=8: one worker at half speed", 0.975, efficiency(8, 8, rates={"worker0": "100mbit"})),
        Row("n=8 k=8: one summer at a tenth", 0.975, efficiency(8, 8, rates={"summer0": "20mbit"})),
    ]
    table += [Row(f"n=4 k={k}: 64 MiB", 0.975, efficiency(4, k)) for k in (0, 1, 2, 4, 6)]
    table += [Row(f"n=16 k={k}: 64 MiB", 0.975, efficiency(16, k, "50mbit")) for k in (0, 8, 16)]
    table += [
        Row(f"n=8 k=4: 64 MiB, bursts of {burst}", 0.975, efficiency(8, 4, burst=burst)) for burst in ("32kb", "512kb")
    ]
    table += [
        Row(f"n=8 k=0: {bytes_} B, time over the best peer's", 1.0, latency(bytes_), at_least=False)
        for bytes_ in (4, 4096, 65536, 262144)
    ]
    table += [
        Row("n=8 k=0: 1,000 tensors of 16 KiB beside Gloo", 1.0, many_small(1000, 16384)),
        Row("n=8 k=0: 1,000 tensors of 16 KiB beside one of 16 MB", 0.9, fused(1000, 16384)),
        Row("n=8 k=8: two ranks per host beside one", 0.95, local_ranks(2)),
        Row("n=2 k=2: links without a limit, beside the best peer", 1.5, beside_peers(2, 2, "none")),
    ]
    return table
