"""Rows of strategies: their measured time beside their modelled and simulated time, and beside peers' algorithms."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from wire import jobs, peers
from wire.efficiency import STEP, one
from wire.lab import Lab, Part, Setting
from wire.row import JOB_SECONDS, MIB, Measured, Row, best_of, enough, quotient
from wire.steps import Steps, spread

FLAT = Setting(8, 0)
# Links without a limit: a shaped one would let small tensors through at once, by the bytes that its bucket has saved.
# Two hosts, so that each has a core of its own on every machine.
SMALL = Setting(2, 0, rate="none", pinned=True)
SMALL_SIZES = {4: "4 B", 4096: "4 KiB", 16384: "16 KiB", 65536: "64 KiB"}
MORE = 20  # factor on the number of steps with small tensors
LEAST_OF_REPORTS = 20000  # steps with small tensors, in which ranks report several times
RACKS = Setting(8, 0, tiers=(4, 2), uplinks=("50mbit",))
TIERS = Setting(12, 0, tiers=(3, 2, 2), uplinks=("100mbit", "50mbit"))
# 16 processes share few cores, so links are slow enough to be the limit. A probe of two hosts shows an uplink only if
# the uplink is slower than a link of a host.
HIDDEN = Setting(16, 0, rate="40mbit", tiers=(4, 4), uplinks=("20mbit",))
HIDDEN_STEP = 2 * MIB
# The order of the workers, in which each four successive ones are a random group: random.Random(1).shuffle().
HIDDEN_ORDER = [2, 10, 0, 14, 6, 5, 3, 8, 7, 11, 15, 1, 12, 13, 9, 4]
RACKS_STEP = 16 * MIB  # per worker; a quarter of STEP, as the uplinks have a quarter of the hosts' rate
# The ranks of Gloo's ring alternate between the two racks, as ranks do whose order follows from nothing.
ALTERNATING = [0, 4, 1, 5, 2, 6, 3, 7]


@dataclass(frozen=True)
class Strategy:
    name: str
    stages: tuple[int, ...] = ()

    @property
    def label(self) -> str:
        return f"{self.name} {','.join(map(str, self.stages))}" if self.stages else self.name

    def flags(self, of_name: str) -> list[str]:
        """Returns the flags of a command in which the strategy is the flag `of_name`."""
        return [of_name, self.name, *(["--stages", ",".join(map(str, self.stages))] if self.stages else [])]


RING, HALVING, BCUBE = Strategy("ring"), Strategy("halving-doubling"), Strategy("bcube")
FLAT_STRATEGIES = [
    RING,
    HALVING,
    Strategy("double-tree"),
    BCUBE,
    Strategy("blueconnect", (2, 2, 2)),
]
RACKS_STRATEGIES = [
    Strategy("blueconnect", (4, 2)),
    Strategy("racks", (2, 4)),
    Strategy("two-level", (2, 4)),
    RING,
    HALVING,
]


def gleaner(*arguments: str) -> dict[str, object]:
    """Returns the JSON that a command prints."""
    told = subprocess.run([jobs.GLEANER, *arguments, "-o", "json"], capture_output=True, text=True)
    if told.returncode != 0:
        raise RuntimeError(told.stderr.strip())
    return dict(json.loads(told.stdout))


def simulated(lab: Lab, strategy: Strategy, bytes_: int, cut: bool = True) -> float:
    """Returns the simulated seconds on the lab's topology, for a vector that is cut as in a job, or whole."""
    flags = ["--topology", str(lab.topology_file()), "--ranks", str(lab.setting.workers), "--bytes", str(bytes_)]
    flags += strategy.flags("--algorithm") + (["--partition-bytes", "plan"] if cut else [])
    return float(str(gleaner("sim", *flags)["seconds"]))


def modelled(lab: Lab, strategy: Strategy, bytes_: int) -> float:
    """Returns the seconds by the model of docs/strategies.md."""
    compared = gleaner("strategies", "--topology", str(lab.topology_file()), "--sizes", str(bytes_))
    for entry in compared["strategies"]:  # type: ignore[attr-defined]
        if entry["strategy"] == strategy.name and tuple(entry["stages"]) in (strategy.stages, ()):
            return float(entry["seconds"][0])
    raise RuntimeError(f"`gleaner strategies` does not compare {strategy.label}")


def measured(lab: Lab, strategy: Strategy, bytes_: int, steps: int) -> Steps:
    part, expected = lab.part(lab.setting.workers, 0), simulated(lab, strategy, bytes_)
    return lab.once(
        ("strategy", strategy, bytes_, steps),
        lambda: jobs.measure(part, one(bytes_), *enough(expected, steps), flags=strategy.flags("--strategy")),
    )


def seconds_of(lab: Lab, strategy: Strategy, bytes_: int, found: Steps) -> dict[str, float]:
    return {
        "step": found.median,
        "model": modelled(lab, strategy, bytes_),
        "simulated": simulated(lab, strategy, bytes_),
    }


def beside_model(name: str, setting: Setting, strategy: Strategy, bytes_: int, expected: float) -> Row:
    def measure(lab: Lab, steps: int) -> Measured:
        found = measured(lab, strategy, bytes_, steps)
        figures = seconds_of(lab, strategy, bytes_, found)
        return Measured(figures["model"] / found.median, found.spread, figures)

    return Row(f"{name}: {strategy.label} beside its model", 0.97, setting, measure,
               lambda steps: JOB_SECONDS + sum(enough(expected, steps)) * expected)  # fmt: skip


def beside_simulator(name: str, setting: Setting, strategy: Strategy, bytes_: int) -> Row:
    """Returns a row of the lesser of simulated and measured time over the greater."""

    def measure(lab: Lab, steps: int) -> Measured:
        found = measured(lab, strategy, bytes_, steps)
        figures = seconds_of(lab, strategy, bytes_, found)
        ratio = figures["simulated"] / found.median
        return Measured(min(ratio, 1 / ratio), found.spread, figures)

    # The row beside the model measures the steps of this row, too.
    return Row(f"{name}: {strategy.label} beside the simulator", 0.95, setting, measure, lambda _: 1.0)


def modelled_by_auto(lab: Lab, bytes_: int, steps: int) -> dict[str, float]:
    """Returns the time of a tensor by each strategy, by the latency and overhead that the ranks of a job measure."""

    def run() -> dict[str, float]:
        path = lab.folder / "summary.json"
        flags = ["--strategy", "auto", "--bits", "Schedule", "--summary", str(path)]
        jobs.one_run(lab.part(lab.setting.workers, 0), one(bytes_), steps, 20, flags=flags)
        size = next(each for each in json.loads(path.read_text())["candidates"] if each["bytes"] == bytes_)
        return {each["strategy"]: float(each["modelled_seconds"]) for each in size["candidates"]}

    return dict(lab.once(("modelled by auto", bytes_, steps), run))


def small_beside_auto(bytes_: int, label: str) -> Row:
    """Returns a row of the model that is farthest from the measured latency: the greater of both over the lesser."""
    every = [each for each in FLAT_STRATEGIES if not each.stages] + [Strategy("summers"), Strategy("gather")]

    def measure(lab: Lab, steps: int) -> Measured:
        figures, ratios, spreads = {}, [], []
        models = modelled_by_auto(lab, bytes_, max(MORE * steps, LEAST_OF_REPORTS))
        for strategy in every:
            found = jobs.measure(lab.part(lab.setting.workers, 0), one(bytes_), MORE * steps, 20,
                                 flags=strategy.flags("--strategy"))  # fmt: skip
            model = models[strategy.name]
            figures |= {strategy.name: found.latency, f"{strategy.name} model": model}
            ratios.append(max(model / found.latency, found.latency / model))
            spreads.append(spread(found.latencies))
        return Measured(max(ratios), max(spreads), figures)

    return Row(f"n={SMALL.workers}: {label} by each strategy, apart from its model", 1.5, SMALL, measure,
               lambda steps: (len(every) + 1) * (JOB_SECONDS + MORE * steps * 2e-3), at_least=False)  # fmt: skip


def ordered(part: Part, order: list[int]) -> Part:
    """Returns the same workers in another order."""
    return Part(part.lab, tuple(part.workers[i] for i in order), part.summers)


def beside_peers(strategy: Strategy, others: list[str], expected: float) -> Row:
    """Compares with the algorithms of the same name: "gloo NAME" and "mpi NAME"."""

    def measure(lab: Lab, steps: int) -> Measured:
        part = lab.part(8, 0)
        ours = measured(lab, strategy, STEP, steps)
        runs = {other: other.split(" ", 1) for other in others}
        found = {
            other: {"gloo": peers.gloo, "mpi": peers.mpi}[kind](part, which, [STEP], *enough(expected, steps))
            for other, (kind, which) in runs.items()
        }
        best, figures = best_of(found, ours)
        return quotient(best, ours, figures)

    name = f"n=8: {strategy.label} beside the same of {' and '.join(sorted({other.split()[0] for other in others}))}"
    return Row(name, 1.0, FLAT, measure,
               lambda steps: (1 + 1.3 * len(others)) * sum(enough(expected, steps)) * expected, peers=True)  # fmt: skip


def beside_alternating_ring(lab: Lab, steps: int) -> Measured:
    """Compares the best strategy of the lab with racks with Gloo's ring whose neighbours are in different racks."""
    found = {each.label: measured(lab, each, RACKS_STEP, steps) for each in RACKS_STRATEGIES[:2]}
    best = min(found, key=lambda label: found[label].median)
    ring = peers.gloo(ordered(lab.part(8, 0), ALTERNATING), "ring_chunked", [RACKS_STEP], 2, 1)
    return quotient(ring, found[best], {"ours": found[best].median, "best": best, "gloo ring": ring.median})


def auto_beside_best(lab: Lab, steps: int) -> Measured:
    """Compares the best strategy of the lab with racks with --strategy auto, which reads the lab's topology."""
    found = {each.label: measured(lab, each, RACKS_STEP, steps) for each in RACKS_STRATEGIES}
    flags = ["--strategy", "auto", "--bits", "Schedule", "--topology", str(lab.topology_file())]
    auto = jobs.measure(lab.part(8, 0), one(RACKS_STEP), *enough(3.0, steps), flags=flags)
    best, figures = best_of(found, auto)
    return quotient(best, auto, figures)


def probes_of(part: Part) -> Path:
    """Measures all pairs of hosts. Returns the file of probes."""
    command = [*part.lab.starter(), jobs.GLEANER, "probe", "pairs", "--hosts", str(part.hosts_file())]
    told = subprocess.run(command, capture_output=True, text=True)
    if told.returncode != 0:
        raise RuntimeError(told.stderr.strip())
    path = part.lab.folder / "probes.json"
    path.write_text(told.stdout)
    return path


def found_groups_beside_random(lab: Lab, steps: int) -> Measured:
    """Compares two-level in random groups with two-level in the groups that probes find. The workers of both jobs have
    the same order, which says nothing about their racks."""
    part = ordered(lab.part(16, 0), HIDDEN_ORDER)
    probes = probes_of(part)
    by_probes = jobs.measure(part, one(HIDDEN_STEP), *enough(2.0, steps),
                             flags=["--strategy", "two-level", "--topology", str(probes)])  # fmt: skip
    random = jobs.measure(part, one(HIDDEN_STEP), *enough(6.0, steps),
                          flags=["--strategy", "two-level", "--stages", "4,4"])  # fmt: skip
    return quotient(random, by_probes, {"ours": by_probes.median, "random groups": random.median})


def beside_equation(lab: Lab, steps: int) -> Measured:
    """Compares BlueConnect's time with Eq. 7, which the simulator agrees with for a vector that is not cut."""
    strategy = Strategy("blueconnect", (3, 2, 2))
    found = measured(lab, strategy, RACKS_STEP, steps)
    equation = simulated(lab, strategy, RACKS_STEP, cut=False)
    figures = {"step": found.median, "equation": equation, "simulated": simulated(lab, strategy, RACKS_STEP)}
    return Measured(equation / found.median, found.spread, figures)


def flat_rows() -> list[Row]:
    rows = []
    for strategy in FLAT_STRATEGIES:
        rows.append(beside_model("n=8", FLAT, strategy, STEP, 5.5))
        rows.append(beside_simulator("n=8", FLAT, strategy, STEP))
    return [
        *rows,
        beside_peers(RING, ["gloo ring_chunked", "gloo torch", "mpi ring", "mpi segmented_ring"], 5.0),
        beside_peers(HALVING, ["gloo halving_doubling", "mpi rabenseifner"], 6.0),
        beside_peers(BCUBE, ["gloo bcube"], 5.0),
    ]


def rows() -> list[Row]:
    racks = []
    for strategy in RACKS_STRATEGIES:
        racks.append(beside_model("2 racks of 4", RACKS, strategy, RACKS_STEP, 4.0))
        racks.append(beside_simulator("2 racks of 4", RACKS, strategy, RACKS_STEP))
    racks.append(Row("2 racks of 4: auto beside the best strategy", 0.98, RACKS, auto_beside_best,
                     lambda steps: sum(enough(3.0, steps)) * 3.0))  # fmt: skip
    racks.append(Row("2 racks of 4: the best strategy beside Gloo's ring across racks", 1.8, RACKS,
                     beside_alternating_ring, lambda _: 70.0, peers=True))  # fmt: skip
    tiers = Row("3 tiers: blueconnect 3,2,2 beside its Eq. 7", 0.95, TIERS, beside_equation, lambda steps: 3.0 * steps)
    hidden = Row("16 hosts in 4 hidden groups: two-level by probes beside random groups", 1.2, HIDDEN,
                 found_groups_beside_random, lambda _: 90.0 + 150.0)  # fmt: skip
    small = [small_beside_auto(*size) for size in SMALL_SIZES.items()]
    return [*flat_rows(), *racks, tiers, hidden, *small]
