"""Results of a model: each contender's step time, the limit for its number of summers, and the ratios aimed at."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Optional

from wire.steps import Steps

from training.limits import Limit

OF_LIMIT = 0.95
OVER_DDP = {"vgg16": 1.6}
OF_OPTIMIZER = {"vgg16": 0.95}  # aim of DDP with backend gleaner, which as DistributedOptimizer waits for all sums


@dataclass
class Contest:
    """A contender's result. `in_order` is the least step time if gradients are sent in the order of the backward
    pass."""

    contender: str
    summers: int
    steps: Steps
    limit: Limit
    in_order: float

    @property
    def of_limit(self) -> float:
        return self.limit.step / self.steps.median

    def as_json(self) -> dict[str, Any]:
        return {
            "contender": self.contender,
            "summers": self.summers,
            "seconds": self.steps.seconds,
            "median": self.steps.median,
            "spread": self.steps.spread,
            "limit": asdict(self.limit),
            "in_order": self.in_order,
            "of_limit": self.of_limit,
        }


@dataclass
class Result:
    model: str
    workers: int
    rate: str
    network: str
    slower: float
    source: str
    contests: list[Contest] = field(default_factory=list)

    def best(self, name: str, summers: Optional[int] = None) -> Optional[Contest]:
        """Returns the fastest contest whose contender's name begins with `name`, or None."""
        chosen = [
            each
            for each in self.contests
            if each.contender.startswith(name) and summers in (None, each.summers)
        ]  # fmt: skip
        return min(chosen, key=lambda each: each.steps.median, default=None)

    def ratios(self) -> list[tuple[str, float, Optional[float]]]:
        """Returns names, ratios and aims."""
        found = []
        most = max((each.summers for each in self.contests), default=0)
        ddp, after = self.best("DDP"), self.best("all-reduce")
        for summers in sorted({each.summers for each in self.contests}, reverse=True):
            ours = self.best("CrossBarrier", summers)
            if ours is None:
                continue
            found.append((f"k = {summers}: limit / CrossBarrier", ours.of_limit, OF_LIMIT))
            for name, other in (("DDP", ddp), ("all-reduce after backward", after)):
                if other is not None:
                    aim = OVER_DDP.get(self.model) if name == "DDP" and summers == most == self.workers else None
                    found.append((f"k = {summers}: {name} / CrossBarrier", other.steps.median / ours.steps.median, aim))
        for summers in sorted({each.summers for each in self.contests}, reverse=True):
            optimizer, backend = (self.best(name, summers) for name in ("DistributedOptimizer", "backend gleaner"))
            if optimizer is not None and backend is not None:
                ratio = optimizer.steps.median / backend.steps.median
                name = f"k = {summers}: DistributedOptimizer / DDP with backend gleaner"
                found.append((name, ratio, OF_OPTIMIZER.get(self.model)))
        return found

    def as_json(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in ("model", "workers", "rate", "network", "slower", "source")},
            "contests": [contest.as_json() for contest in self.contests],
            "ratios": [{"name": name, "ratio": ratio, "aim": aim} for name, ratio, aim in self.ratios()],
        }

    def table(self) -> str:
        lines = [
            f"{self.model}, n = {self.workers}: links of {self.rate} stand for {self.network}, everything takes "
            f"{self.slower:g} times as long",
            f"  {'':42} {'k':>2} {'step':>8} {'':>7} {'limit':>8} {'limit/step':>11}",
        ]
        for each in self.contests:
            lines.append(
                f"  {each.contender:42} {each.summers:2} {each.steps.median:7.2f}s ±{each.steps.spread:6.1%} "
                f"{each.limit.step:7.2f}s {each.of_limit:11.3f}"
            )
        for summers, each in sorted({each.summers: each for each in self.contests}.items(), reverse=True):
            lines.append(
                f"  k = {summers}: compute {each.limit.compute:.2f}s, bound {each.limit.bound:.2f}s, dependency "
                f"{each.limit.dependency:.2f}s; sent in the order of backward {each.in_order:.2f}s"
            )
        for name, ratio, aim in self.ratios():
            verdict = "" if aim is None else f"  aim {aim:.2f}{'' if ratio >= aim else '  SHORT'}"
            lines.append(f"  {name:57} {ratio:8.3f}{verdict}")
        return "\n".join(lines)
