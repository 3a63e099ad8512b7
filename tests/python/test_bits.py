"""Tests that anybody can compute the bits that a job returns: those of jobs are those of docs/bench_reference.py.

Jobs are drawn at random from all strategies, numbers of workers, summers and local ranks, data types, sizes of tensors
and sizes of partitions. A run prints the seed of its jobs; GLEANER_SWEEP_SEED takes another:

    GLEANER_SWEEP_SEED=123 /usr/bin/python3 -m pytest -s tests/python/test_bits.py
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple, Optional

import pytest
from conftest import GLEANER, PROGRAMS, ROOT, TIMEOUT, environment, patient, run_job
from test_strategies_sweep import strategies

sys.path.insert(0, str(PROGRAMS))
from contributions import bench_reference, contribution

SEED = int(os.environ.get("GLEANER_SWEEP_SEED") or random.SystemRandom().randrange(1 << 32))
DRAWS = 12  # in the check; each strategy at least once
LONG_DRAWS = 300
SIZES = [0, 8, 4096, 100_008, 300_000]
PARTITION_BYTES = [8, 1000, 4096, 65_536, 100_000, 4 << 20]
MOST_PARTITIONS = 200
MOST_RANKS = 18
NAMES = ["auto", "bcube", "blueconnect", "double-tree", "gather", "halving-doubling", "racks", "ring", "summers"]
NAMES += ["two-level"]
STAGED_FOR_THREE = ["blueconnect", "double-tree", "halving-doubling", "racks", "ring", "two-level"]
SCHEDULES = [name for name in NAMES if name not in ("auto", "summers")]


class Job(NamedTuple):
    strategy: tuple[str, ...]  # flags
    workers: int
    local_ranks: int
    summers: int
    dtype: str
    bytes: int
    partition_bytes: Optional[int]  # None: the job's default
    seed: int
    is_bench: bool = False  # else programs/bits.py runs in the job
    average: bool = False
    sent_as: Optional[str] = None  # of a compressed tensor

    def ranks(self) -> int:
        return self.workers * self.local_ranks

    def tensor(self, name: str = "w") -> dict[str, Any]:
        """Returns the tensor of programs/bits.py."""
        average = {"average": True} if self.average else {}
        compressed = {"sent_as": self.sent_as} if self.sent_as else {}
        return {
            "name": name,
            "dtype": self.dtype,
            "elements": self.elements(),
            "seed": self.seed,
            **average,
            **compressed,
        }

    def flags(self) -> tuple[str, ...]:
        given = () if self.partition_bytes is None else ("--partition-bytes", str(self.partition_bytes))
        return (*self.strategy, *given)

    def elements(self) -> int:
        return self.bytes // bench_reference.DATA_TYPES[self.dtype].stored.itemsize


def draw(number: int) -> Job:
    dice = random.Random(f"{SEED} {number}")
    name = NAMES[number % len(NAMES)]
    by_workers = {
        n: [flags for flags in [*strategies(n), ("--strategy", "gather")] if flags[1] == name] for n in range(2, 10)
    }
    workers = dice.choice([n for n, found in by_workers.items() if found])
    strategy = dice.choice(by_workers[workers])
    strategy = strategy[: strategy.index("--summers")] if "--summers" in strategy else strategy
    dtype = dice.choice(["fp32", "fp32", "fp64", "fp64", "fp16", "bf16", "int32"])  # mostly types that show all bits
    element = bench_reference.DATA_TYPES[dtype].stored.itemsize
    size = dice.choice([dice.choice(SIZES), dice.randrange(300_001)]) // element * element
    least = 2 * size // MOST_PARTITIONS  # 16-bit values travel as fp32
    partition_bytes = dice.choice([None, *(each for each in PARTITION_BYTES if each >= least)])
    is_bench = name != "auto" and partition_bytes is not None and dice.random() < 0.5
    most_ranks = MOST_RANKS if is_bench else MOST_RANKS // 2  # the others start Python
    local_ranks = dice.choice([ranks for ranks in (1, 1, 2, 3) if ranks == 1 or ranks * workers <= most_ranks])
    average = not is_bench and dtype != "int32" and dice.random() < 0.5
    sent_as = dice.choice([None, "fp16", "bf16"]) if dtype == "fp32" and not is_bench else None
    rest = (dtype, size, partition_bytes, dice.randrange(1 << 32), is_bench, average, sent_as)
    return Job(strategy, workers, local_ranks, dice.choice([0, 1, 3]), *rest)


def reference(job: Job, plan: dict[str, Any], tensor: Optional[dict[str, Any]] = None, step: int = 0) -> str:
    """Returns the digest of what the job makes of a tensor by this plan, which may lack the sizes of partitions.

    The tensor is one of programs/bits.py, or else that of `gleaner bench push-pull` in a step.
    """
    schedule, partitions = bench_reference.schedule_of(plan, job.workers, str(GLEANER)), None
    if "partition_bytes" in plan:
        element = bench_reference.DATA_TYPES[job.sent_as or job.dtype].stored.itemsize
        partitions = [size // element for size in plan["partition_bytes"]]
    elif schedule is not None:
        shape = (job.elements(), job.dtype, job.partition_bytes)
        partitions = bench_reference.cut(*shape, schedule, job.local_ranks, job.sent_as)
    if tensor is None:
        values = [bench_reference.data(job.seed, step, rank, job.elements(), job.dtype) for rank in range(job.ranks())]
    else:
        values = [contribution(tensor, rank) for rank in range(job.ranks())]
    average = tensor is not None and tensor.get("average", False)
    result = bench_reference.reduced(
        values, job.dtype, schedule, partitions, job.local_ranks, plan.get("ranks"), average, job.sent_as
    )
    return bench_reference.sha256([result])


def plan_of(strategy: tuple[str, ...]) -> dict[str, Any]:
    """Returns the plan that these flags of a job stand for, without the sizes of partitions."""
    given = dict(zip(strategy[::2], strategy[1::2]))
    stages = [int(word) for word in given.get("--stages", "").split(",") if word]
    return {"algorithm": given["--strategy"], "stages": stages, "radix": int(given.get("--radix", 0))}


def run_bench(job: Job) -> set[str]:
    """Runs `gleaner bench push-pull` in the job. Returns the digests that its workers print."""
    counts = ("--workers", job.workers, "--local-ranks", job.local_ranks, "--summers", job.summers)
    command = [str(GLEANER), "run", *patient((*map(str, counts), *job.flags())), "--"]
    command += [str(GLEANER), "bench", "push-pull", "--bytes", str(job.bytes), "--dtype", job.dtype]
    command += ["--seed", str(job.seed), "--steps", "2", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, env=environment())
    assert done.returncode == 0, f"{job}: {done.stderr}"
    lines = [json.loads(line[line.index("{") :]) for line in done.stdout.splitlines() if '"sha256"' in line]
    assert len(lines) == job.workers, f"{job}: {done.stdout}"
    return {line["sha256"] for line in lines}


def run_bits(
    tensors: list[dict[str, Any]], *flags: str, workers: int, summers: int = 0, local_ranks: int = 1
) -> list[dict[str, Any]]:
    """Runs programs/bits.py in a job. Returns the reports of all ranks."""
    done = run_job(
        "bits.py", *map(json.dumps, tensors), workers=workers, summers=summers, local_ranks=local_ranks, flags=flags
    )
    assert done.returncode == 0, f"{flags}: {done.stderr}"
    reports = [json.loads(line[line.index("{") :]) for line in done.stdout.splitlines() if '"sha256"' in line]
    assert len(reports) == workers * local_ranks, done.stdout
    return reports


def check(job: Job) -> None:
    if job.is_bench:
        assert run_bench(job) == {reference(job, plan_of(job.strategy), step=1)}, job
        return
    tensor = job.tensor()
    shape = {"workers": job.workers, "summers": job.summers, "local_ranks": job.local_ranks}
    for report in run_bits([tensor], *job.flags(), **shape):
        # The plan tells which strategy auto has chosen, and the default size of partitions.
        is_chosen = job.strategy[1] == "auto" or job.partition_bytes is None
        plan = report["w"]["plan"] if is_chosen else plan_of(job.strategy)
        assert report["w"]["sha256"] == reference(job, plan, tensor), f"{job} {report['w']['plan']}"


@pytest.mark.parametrize("number", range(DRAWS))
def test_bits_are_those_of_the_reference(number: int) -> None:
    print(f"GLEANER_SWEEP_SEED={SEED}: {draw(number)}")
    check(draw(number))


@pytest.mark.long
def test_bits_of_hundreds_of_jobs_are_those_of_the_reference() -> None:
    failures = []
    for number in range(DRAWS, LONG_DRAWS):
        print(f"{number} of {LONG_DRAWS} (GLEANER_SWEEP_SEED={SEED}): {draw(number)}", flush=True)
        try:
            check(draw(number))
        except (AssertionError, subprocess.TimeoutExpired) as failure:
            failures.append(str(failure))
    assert not failures, f"GLEANER_SWEEP_SEED={SEED}\n" + "\n".join(failures)


@pytest.mark.parametrize("sent_as", ["fp16", "bf16"])
@pytest.mark.parametrize("local_ranks", [1, 2])
@pytest.mark.parametrize("strategy", ["summers", "gather", "ring"])
def test_bits_of_compressed_tensors_are_those_of_the_reference(strategy: str, local_ranks: int, sent_as: str) -> None:
    """The tensor has several pieces and partitions, of which the last ones are shorter."""
    job = Job(("--strategy", strategy), 2, local_ranks, 1, "fp32", 2_800_012, 300_000, 5, average=True, sent_as=sent_as)
    check(job)


def flags_of(strategy: str, workers: int) -> tuple[str, ...]:
    """Returns the flags of a strategy for four or eight workers."""
    stages = {"racks": f"{workers // 2},2", "two-level": f"2,{workers // 2}"}.get(strategy)
    return ("--strategy", strategy, *(("--stages", stages) if stages else ()))


@pytest.mark.parametrize("workers", [4, pytest.param(8, marks=pytest.mark.long)])
@pytest.mark.parametrize("strategy", ["auto", "summers", *SCHEDULES])
def test_sums_on_their_way_are_neither_rounded_nor_too_large(strategy: str, workers: int) -> None:
    """The average of values of 30000 is exact, though their sum is above the largest fp16 value.

    The bf16 values next to 256 are 255 and 258, so a sum of 256 and 1 that is rounded stays 256. The exact sums, 259
    and 263, are rounded to even at the end. The reference of a tensor does not know the other tensors.
    """
    job = Job(flags_of(strategy, workers), workers, 1, 0, "fp32", 120_004, 1000, seed=5, average=True)
    average = {"name": "average", "dtype": "fp16", "elements": 1000, "values": [30000.0] * workers, "average": True}
    total = {"name": "total", "dtype": "bf16", "elements": 1001, "values": [256.0] + [1.0] * (workers - 1)}
    narrow = job._replace(dtype="bf16", bytes=20_002)
    for report in run_bits([average, total, narrow.tensor("v"), job.tensor()], *job.flags(), workers=workers):
        assert report["average"]["results"] == [30000.0]
        assert report["total"]["results"] == [{4: 260.0, 8: 264.0}[workers]]
        for name, each in (("v", narrow), ("w", job)):
            plan = report[name]["plan"] if strategy == "auto" else plan_of(job.strategy)
            assert report[name]["sha256"] == reference(each, plan, each.tensor()), name


@pytest.mark.parametrize(
    "strategy", [pytest.param(each, marks=[] if each == "ring" else pytest.mark.long) for each in SCHEDULES]
)
def test_another_tensor_changes_no_default_partition_size(strategy: str) -> None:
    tensor = {"name": "w", "dtype": "fp32", "elements": 400_001, "seed": 5}
    other = {"name": "other", "dtype": "bf16", "elements": 50_001, "seed": 6}
    flags = (*flags_of(strategy, 4), "--bandwidth", "1Gbit")
    alone = run_bits([tensor], *flags, workers=4)
    second = run_bits([other, tensor], *flags, workers=4)
    assert len(alone[0]["w"]["plan"]["partition_bytes"]) > 1
    assert {report["w"]["sha256"] for report in alone} == {report["w"]["sha256"] for report in second}
    plans = [dict(reports[0]["w"]["plan"], owners=None) for reports in (alone, second)]  # the stream decides on owners
    assert plans[0] == plans[1]


def documented_bits() -> Any:
    """Returns the function bits() in docs/bench-data.md."""
    block = re.search(
        r"```python\n(import bench_reference.*?)```", (ROOT / "docs/bench-data.md").read_text(), re.DOTALL
    )
    names: dict[str, Any] = {}
    exec(block[1], names)
    return names["bits"]


def unequal_racks() -> dict[str, Any]:
    """Returns a network of two racks of 2 and 3 hosts, in mixed order, of which one host has a slow link."""
    hosts = [{"name": f"host-{i}", "place": [i % 2, i // 2]} for i in range(5)]
    links = [
        {"a": f"host-{i}", "b": f"rack-{i % 2}", "bandwidth": 4e9 if i == 4 else 1e10, "latency_us": 5}
        for i in range(5)
    ]
    links += [{"a": f"rack-{rack}", "b": "core", "bandwidth": 3e9, "latency_us": 20} for rack in range(2)]
    return {"hosts": hosts, "switches": [{"name": name} for name in ("core", "rack-0", "rack-1")], "links": links}


@pytest.mark.parametrize(
    "strategy, fields", [("ring", []), ("racks", ["group_sizes"]), ("two-level", ["group_sizes", "global_chunks"])]
)
def test_bits_follow_from_the_plan_of_a_network(
    strategy: str, fields: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The network decides the rank map, the groups and their masters. The tensor's plan has them."""
    monkeypatch.setenv("PATH", f"{GLEANER.parent}:{os.environ['PATH']}")
    network = tmp_path / "network.json"
    network.write_text(json.dumps(unequal_racks()))
    flags = ("--strategy", strategy, "--topology", str(network))
    tensor = {"name": "w", "dtype": "fp32", "elements": 25_002, "seed": 9}
    values = [contribution(tensor, rank) for rank in range(5)]
    for report in run_bits([tensor], *flags, workers=5):
        plan = report["w"]["plan"]
        assert all(plan[field] for field in ["ranks", *fields]), plan
        assert report["w"]["sha256"] == bench_reference.sha256([documented_bits()(plan, values)])


def run_training(folder: Path, *flags: str, summers: int = 0) -> list[dict[str, str]]:
    """Runs programs/training_bits.py in a job of three workers. Returns the digests of all ranks."""
    meeting = str(folder / f"meeting-{len(list(folder.iterdir()))}")
    done = run_job("training_bits.py", meeting, workers=3, summers=summers, flags=flags)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line[line.index("{") :]) for line in done.stdout.splitlines() if '"running"' in line]
    assert len(found) == 3, done.stdout
    return found


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Returns the digests of training by summers with k = 0."""
    pytest.importorskip("torch")
    ranks = run_training(tmp_path_factory.mktemp("summers"))
    assert all(rank == ranks[0] for rank in ranks)
    return ranks[0]


@pytest.mark.parametrize(
    "strategy, summers",
    [
        ("gather", 0),
        pytest.param("gather", 1, marks=pytest.mark.long),
        pytest.param("summers", 1, marks=pytest.mark.long),
        pytest.param("summers", 3, marks=pytest.mark.long),
    ],
)
def test_training_in_rank_order_has_the_bits_of_summers(
    strategy: str, summers: int, trained: dict[str, str], tmp_path: Path
) -> None:
    assert run_training(tmp_path, "--strategy", strategy, summers=summers) == [trained] * 3


@pytest.mark.long
@pytest.mark.parametrize("strategy", STAGED_FOR_THREE)
def test_training_by_schedules_repeats_its_bits(strategy: str, trained: dict[str, str], tmp_path: Path) -> None:
    """Tensors that accumulate go through summers, so asynchronous training has their bits."""
    flags = ("--strategy", strategy, *(("--stages", "1,3") if strategy == "racks" else ()))
    ranks = run_training(tmp_path, *flags) + run_training(tmp_path, *flags, summers=1)
    assert all(rank == ranks[0] for rank in ranks)
    assert {name: ranks[0][name] for name in ("asynchronously", "running")} == {
        "asynchronously": trained["asynchronously"],
        "running": "summers",
    }


@pytest.mark.long
def test_asynchronous_training_with_auto_has_the_bits_of_summers(trained: dict[str, str], tmp_path: Path) -> None:
    for rank in run_training(tmp_path, "--strategy", "auto", "--bandwidth", "10Gbit", summers=1):
        assert rank["asynchronously"] == trained["asynchronously"]
        assert rank["running"] == "summers"


def run_reference(*flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "docs" / "bench_reference.py"), "--gleaner", str(GLEANER), *flags]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)


def test_the_command_prints_what_the_bench_prints(tmp_path: Path) -> None:
    tensors = tmp_path / "tensors.json"
    sizes = {"a": (30_006, None), "b": (0, "fp64"), "c": (70_000, None), "d": (8_008, "bf16"), "e": (404, "int32")}
    entries = [
        {"name": name, "bytes": size, **({"dtype": kind} if kind else {})} for name, (size, kind) in sizes.items()
    ]
    tensors.write_text(json.dumps(entries))
    flags = ("--workers", "3", "--local-ranks", "2", "--strategy", "ring", "--partition-bytes", "4KiB")
    bench = ("--tensors", str(tensors), "--seed", "7", "--steps", "3")
    command = [str(GLEANER), "run", *patient(flags), "--", str(GLEANER), "bench", "push-pull", *bench, "--json"]
    job = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, env=environment())
    done = run_reference(*flags, *bench)
    assert done.returncode == 0, done.stderr
    assert job.stdout.count(f'"sha256":"{done.stdout.strip()}"') == 3, job.stdout + job.stderr


def test_the_command_takes_plans(tmp_path: Path) -> None:
    plans = tmp_path / "plans.json"
    plan = {"algorithm": "ring", "ranks": [2, 0, 1], "partition_bytes": [4096, 4096, 1808]}
    plans.write_text(json.dumps(plan))
    done = run_reference("--workers", "3", "--plans", str(plans), "--bytes", "10000", "--steps", "1")
    job = Job((), 3, 1, 0, "fp32", 10_000, None, seed=1)
    assert done.stdout.strip() == reference(job, plan), done.stderr


@pytest.mark.parametrize("sizes", [["a"], "x", [-100, 196]])
def test_partitions_of_a_plan_are_sizes(tmp_path: Path, sizes: object) -> None:
    plans = tmp_path / "plans.json"
    plans.write_text(json.dumps({"algorithm": "ring", "partition_bytes": sizes}))
    done = run_reference("--workers", "3", "--bytes", "96", "--plans", str(plans))
    assert done.returncode == 1 and "gleaner.tensor_plan() has a list of sizes there" in done.stderr


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--strategy", "ring"], "give the job's --partition-bytes, or --plans"),
        (["--strategy", "auto"], "auto chooses by tensor: give --plans"),
        (["--strategy", "rings"], "--algorithm"),
        (["--strategy", "ring", "--partition-bytes", "5MiB"], "a partition has 8 to 4194304 bytes"),
        (["--strategy", "ring", "--partition-bytes", "8MiX"], "'8MiX' is no size"),
        (["--strategy", "ring", "--partition-bytes", "8", "--ranks", "0,0,1"], "a rank of its own from 0 to 2"),
        (["--dtype", "fp64", "--bytes", "20"], "20 bytes are not a whole number of fp64 elements"),
        (["--local-ranks", "0"], "--local-ranks must be at least 1"),
        (["--seed", "-1"], "--seed must be 0 to 2^64 - 1"),
        (["--seed", str(1 << 64)], "--seed must be 0 to 2^64 - 1"),
    ],
)
def test_errors_of_the_command_name_the_flag(flags: list[str], message: str) -> None:
    size = [] if "--bytes" in flags else ["--bytes", "96"]
    done = run_reference("--workers", "3", *size, *flags)
    assert done.returncode in (1, 2) and done.stdout == ""
    assert message in done.stderr and "Traceback" not in done.stderr
