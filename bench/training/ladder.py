"""The ladder of GradientFlow: one trace, with one optimization more on each rung.

Source: P. Sun et al., "Optimizing Network Performance for Distributed DNN Training on GPU Clusters" (2019), section
4.1, Tables 1 and 2. The ladder begins at their second column (NCCL, single precision): the first (MPI) has another
all-reduce."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from wire.steps import Steps, spread

from training import limits
from training.traces import Layer

THETA = 1 << 20  # bytes of a pack, and of a packet of sparse communication
SHARE = 0.85  # of chunks that are not sent, as in section 4.2


@dataclass(frozen=True)
class Rung:
    """A way to train.

    Attributes:
        waits: Whether no gradient is sent before the backward pass ends.
        part: Bytes that a worker sends, over those of its gradients.
        options: Flags of worker.py for DistributedOptimizer.
    """

    waits: bool
    part: float
    options: tuple[str, ...] = ()

    @property
    def flags(self) -> tuple[str, ...]:
        return ("--without-overlap", *self.options) if self.waits else self.options

    def limit(self, layers: Sequence[Layer], bound: float) -> float:
        """Returns the least step time in seconds; `bound` is that of all bytes. Sent chunks count as spread evenly."""
        return (limits.afterwards if self.waits else limits.in_order)(layers, bound * self.part)


_HALF = ("--compression", "fp16")
_PACKS = (*_HALF, "--fusion-bytes", str(THETA))
RUNGS = {
    "baseline": Rung(True, 1.0),
    "+ wire precision": Rung(True, 0.5, _HALF),
    "+ overlap": Rung(False, 0.5, _HALF),
    "+ lazy all-reduce": Rung(False, 0.5, _PACKS),
    "+ sparse communication": Rung(False, 0.5 * (1 - SHARE), (*_PACKS, "--share", str(SHARE))),
}
BASELINE = next(iter(RUNGS))


@dataclass(frozen=True)
class Published:
    """Published throughputs of a model on a cluster, in images per second.

    Attributes:
        gpus: GPUs of the cluster.
        alone: Throughput of one GPU in single precision (sections 2.3.3 and 2.5).
        together: Throughput of the cluster on each rung (Tables 1 and 2).
    """

    gpus: int
    alone: float
    together: tuple[float, ...]

    @property
    def waiting(self) -> float:
        """The baseline's time for communication over its time for computation."""
        return self.gpus * self.alone / self.together[0] - 1

    def ratio(self, rung: str) -> float:
        """Returns the throughput of a rung over that of the baseline."""
        return self.together[list(RUNGS).index(rung)] / self.together[0]


PUBLISHED = {
    "alexnet": {
        "P": Published(128, 1670, (75.7e3, 110.3e3, 119.5e3, 172.8e3, 245.4e3)),
        "V": Published(512, 2900, (240.0e3, 326.7e3, 349.1e3, 780.3e3, 1514.3e3)),
    },
    "resnet50": {
        "P": Published(128, 172, (15.5e3, 17.8e3, 26.9e3, 29.6e3, 29.6e3)),
        "V": Published(512, 301, (56.8e3, 71.8e3, 80.0e3, 269.5e3, 273.2e3)),
    },
}


@dataclass
class Climb:
    """A rung's measurements.

    Attributes:
        limit: Seconds of the shortest possible step, by the links and the computation.
        seconds: The step times of each round.
        sent_bytes: Bytes that all workers' hosts send in a step of the last round, with headers.
        cores: Cores that the workers use, on average over the steps of the round with the most.
        cores_of_machine: Cores that all programs of the machine use during the rung's jobs, in the same way.
    """

    limit: float
    seconds: list[list[float]] = field(default_factory=list)
    sent_bytes: float = 0.0
    cores: float = 0.0
    cores_of_machine: float = 0.0

    def add(self, steps: Steps, lines: Sequence[dict[str, Any]], cores_of_machine: float) -> None:
        """Adds a round: its steps, and the lines of its workers (worker.py)."""
        self.seconds.append(steps.seconds)
        self.sent_bytes = sum(line["sent_bytes"] for line in lines) / len(lines[0]["step_ends"])
        took = lines[0]["step_ends"][-1] - lines[0]["step_begins"][0]
        self.cores = max(self.cores, sum(line["processor_seconds"] for line in lines) / took)
        self.cores_of_machine = max(self.cores_of_machine, cores_of_machine)

    @property
    def medians(self) -> list[float]:
        return [statistics.median(each) for each in self.seconds]

    @property
    def step(self) -> float:
        return statistics.median(self.medians)


@dataclass
class Ladder:
    """All rungs of a model at the communication of a cluster.

    Attributes:
        model: Name of the trace.
        cluster: Letter of the cluster, P or V.
        workers: Workers, which are hosts of the lab.
        rate: Rate of their links, in the notation of tc.
        compute: Seconds of computation in a step.
        rungs: The measurements by rung.
    """

    model: str
    cluster: str
    workers: int
    rate: str
    compute: float
    rungs: dict[str, Climb] = field(default_factory=dict)

    @property
    def published(self) -> Published:
        return PUBLISHED[self.model][self.cluster]

    def ratios(self, rung: str) -> list[float]:
        """Returns the baseline's step time over that of a rung, in each round."""
        return [base / own for base, own in zip(self.rungs[BASELINE].medians, self.rungs[rung].medians)]

    def as_json(self) -> dict[str, Any]:
        told = {name: getattr(self, name) for name in ("model", "cluster", "workers", "rate", "compute")}
        told["waiting"] = self.waiting
        told["published_waiting"] = self.published.waiting
        told["rungs"] = [
            {
                "rung": rung,
                "step": climb.step,
                "ratio": statistics.median(self.ratios(rung)),
                "spread": spread(self.ratios(rung)),
                "published": self.published.ratio(rung),
                **asdict(climb),
            }
            for rung, climb in self.rungs.items()
        ]
        return told

    @property
    def waiting(self) -> float:
        return self.rungs[BASELINE].step / self.compute - 1


def markdown(ladders: Sequence[dict[str, Any]], processors: int) -> str:
    """Returns the results of Ladder.as_json(), which are of one machine with so many processors, as a table with a
    column for each ladder. Published figures are in parentheses."""
    heads = [f"{each['model']}, {each['cluster']}" for each in ladders]
    lines = [f"| | {' | '.join(heads)} |", "|---|" + "---|" * len(heads)]

    def line(head: str, cells: Sequence[str]) -> None:
        lines.append(f"| {head} | {' | '.join(cells)} |")

    waits = [f"{each['waiting']:.2f} ({each['published_waiting']:.2f})" for each in ladders]
    line("baseline: communication / computation", waits)
    line("baseline: seconds of a step", [f"{each['rungs'][0]['step']:.2f}" for each in ladders])
    for rungs in zip(*(each["rungs"][1:] for each in ladders)):
        line(rungs[0]["rung"], [f"{ratio_of(rung)} ({rung['published']:.2f})" for rung in rungs])
    mib = [" ".join(f"{rung['sent_bytes'] / (1 << 20):.0f}" for rung in each["rungs"]) for each in ladders]
    line("MiB sent in a step, by rung", mib)
    of_limit = [" ".join(f"{rung['limit'] / rung['step']:.2f}" for rung in each["rungs"]) for each in ladders]
    line("shortest possible / measured step, by rung", of_limit)
    for head, name in (("these workers", "cores"), ("all programs", "cores_of_machine")):
        most = [max(rung[name] for rung in each["rungs"]) for each in ladders]
        line(f"cores in use by {head}, at most", [f"{each:.2f} of {processors}" for each in most])
    return "\n".join(lines)


def ratio_of(rung: dict[str, Any]) -> str:
    return f"{rung['ratio']:.2f} ± {rung['ratio'] * rung['spread']:.2f}"
