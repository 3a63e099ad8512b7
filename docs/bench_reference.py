"""Computes the bits that a Gleaner job returns, with numpy and without the job (docs/bench-data.md).

As a command it prints the SHA-256 that `gleaner bench push-pull` prints for the same data and strategy:

    python3 docs/bench_reference.py --workers 5 --strategy ring --partition-bytes 64KiB --bytes 300000 --dtype bf16

As a module it sums any values: reduced() takes the values of all ranks, expected() generates those of the bench. A
schedule is the dict that `gleaner schedule -o json` prints (docs/schedules.md#json). None stands for summers.
"""

from __future__ import annotations

import argparse
import collections
import functools
import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import numpy as np

Schedule = dict[str, Any]

LEAST_PARTITION_BYTES = 8
MOST_PARTITION_BYTES = 4 << 20


@dataclass(frozen=True)
class DataType:
    """The type of a tensor's elements. `stored`: as elements lie in memory. `sums`: the type in which they are added.

    numpy lacks bf16, so a stored bf16 is a uint16.
    """

    stored: np.dtype
    sums: np.dtype

    def widen(self, stored: np.ndarray) -> np.ndarray:
        if self is DATA_TYPES["bf16"]:
            return (stored.astype("<u4") << np.uint32(16)).view("<f4")
        return stored.astype(self.sums)

    def rounded(self, sums: np.ndarray) -> np.ndarray:
        """Rounds to nearest, ties to even. Every NaN becomes the quiet NaN without a sign."""
        if self.sums.kind == "f":
            sums = np.where(np.isnan(sums), self.sums.type(np.nan), sums)
        if self is DATA_TYPES["bf16"]:
            bits = sums.view("<u4").astype("<u8")
            return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(self.stored)
        with np.errstate(over="ignore"):
            return sums.astype(self.stored)


DATA_TYPES = {
    "fp32": DataType(np.dtype("<f4"), np.dtype("<f4")),
    "fp64": DataType(np.dtype("<f8"), np.dtype("<f8")),
    "fp16": DataType(np.dtype("<f2"), np.dtype("<f4")),
    "bf16": DataType(np.dtype("<u2"), np.dtype("<f4")),
    "int32": DataType(np.dtype("<i4"), np.dtype("<i4")),
}


def splitmix64(x: np.ndarray) -> np.ndarray:
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def data(seed: int, step: int, rank: int, elements: int, dtype: str = "fp32", first: int = 0) -> np.ndarray:
    """Returns the elements from number `first` on that `gleaner bench push-pull` makes on a global rank, as stored."""
    key = splitmix64(splitmix64(np.array([seed ^ step], np.uint64)) ^ np.uint64(rank))
    u = splitmix64(key ^ np.arange(first, first + elements, dtype=np.uint64))
    kind = DATA_TYPES[dtype]
    if dtype == "int32":
        return (u >> np.uint64(32)).astype("<u4").view(kind.stored)
    return kind.rounded(((u >> np.uint64(40)).astype("<f8") * 2.0**-23 - 1).astype(kind.sums))


def is_gather(schedule: Schedule) -> bool:
    """Returns whether each worker gets all contributions, and then adds them by itself in rank order."""
    return schedule["postcondition"] == "all-gather"


def cut(
    elements: int,
    dtype: str,
    partition_bytes: int,
    schedule: Schedule,
    local_ranks: int = 1,
    sent_as: Optional[str] = None,
) -> list[int]:
    """Returns the number of elements of each partition of a tensor with this schedule. Arguments are as in reduced().

    Raises:
        ValueError: A job takes no partitions of this size.
    """
    if not LEAST_PARTITION_BYTES <= partition_bytes <= MOST_PARTITION_BYTES:
        raise ValueError(f"a partition has 8 to {MOST_PARTITION_BYTES} bytes (4MiB), not {partition_bytes}")
    kind = DATA_TYPES[sent_as or dtype]
    blocks, are_sums = 1, True  # whether the elements of messages are partial sums, which are wider than fp16 and bf16
    if is_gather(schedule):
        blocks = max((op["slice"][1] for program in schedule["programs"] for op in program), default=1)
        are_sums = local_ranks > 1 and sent_as is None
    factor = kind.sums.itemsize // kind.stored.itemsize if are_sums else 1
    most = min(partition_bytes, MOST_PARTITION_BYTES // blocks) // factor
    count = -(-elements // max(1, most // kind.stored.itemsize))
    return [elements // count + (i < elements % count) for i in range(count)]


def execute(schedule: Schedule, vectors: Sequence[np.ndarray]) -> np.ndarray:
    """Executes an all-reduce. Returns the sum, after which all ranks have the same bits.

    `vectors` has each rank's contribution, in the type in which elements are added. The last axis counts the elements
    of a partition, and others count partitions.

    Raises:
        ValueError: The schedule is no all-reduce among these ranks.
    """
    elements, chunks = vectors[0].shape[-1], schedule["chunks"]
    begin = [c * (elements // chunks) + min(c, elements % chunks) for c in range(chunks + 1)]
    own = [vector.copy() for vector in vectors]
    on_their_way: dict[tuple[int, int], collections.deque] = collections.defaultdict(collections.deque)
    left = [collections.deque(program) for program in schedule["programs"]]

    def advances(rank: int) -> bool:
        """Executes the rank's next operation. Returns whether that was possible."""
        if not left[rank]:
            return False
        op = left[rank][0]
        first, count = op["slice"]
        part = own[rank][..., begin[first] : begin[first + count]]
        if op["op"] == "send":
            on_their_way[rank, op["peer"]].append(part.copy())
        elif not on_their_way[op["peer"], rank]:
            return False
        else:
            received = on_their_way[op["peer"], rank].popleft()
            part[...] = part + received if op["reduce"] else received
        left[rank].popleft()
        return True

    with np.errstate(over="ignore", invalid="ignore"):
        while any([advances(rank) for rank in range(len(own))]):  # a list, so that each rank has its turn
            pass
    same = [np.array_equal(vector, own[0], equal_nan=vector.dtype.kind == "f") for vector in own]
    if any(left) or not all(same):
        raise ValueError(f"the schedule '{schedule['algorithm']}' is no all-reduce among {len(own)} ranks")
    return own[0]


def added(parts: Iterable[np.ndarray]) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        return functools.reduce(np.add, parts)


def reduced(
    values: Sequence[np.ndarray],
    dtype: str,
    schedule: Optional[Schedule] = None,
    partitions: Optional[Sequence[int]] = None,
    local_ranks: int = 1,
    ranks: Optional[Sequence[int]] = None,
    average: bool = False,
    sent_as: Optional[str] = None,
) -> np.ndarray:
    """Returns the sum of a tensor's values, as stored, which every rank of the job gets.

    Args:
        values: By global rank, the elements as stored, one-dimensional.
        dtype: A name in DATA_TYPES.
        schedule: The schedule that sums the tensor; None: summers.
        partitions: The numbers of elements of all partitions, as from cut(). Sums in rank order need none.
        local_ranks: Number of ranks of each worker.
        ranks: The rank map: the rank in the schedule of each worker; None or empty: worker i has rank i.
        average: True: the average.
        sent_as: The type in which a compressed tensor of fp32 travels; None: the tensor is not compressed.

    Raises:
        ValueError: The arguments do not fit each other.
    """
    kind, workers = DATA_TYPES[dtype], len(values) // local_ranks
    travelling = DATA_TYPES[sent_as or dtype]
    if average and dtype == "int32":
        raise ValueError("int32 has no average")
    wide = [kind.widen(each) for each in values]
    contributions = [added(wide[w * local_ranks : (w + 1) * local_ranks]) for w in range(workers)]
    if sent_as is not None:
        contributions = [travelling.widen(travelling.rounded(each)) for each in contributions]
    if schedule is None or is_gather(schedule):
        total = added(contributions)
    else:
        total = staged(contributions, schedule, partitions, ranks)
    result = travelling.rounded(total / kind.sums.type(len(values)) if average else total)
    return result if sent_as is None else travelling.widen(result)


def staged(
    contributions: list[np.ndarray],
    schedule: Schedule,
    partitions: Optional[Sequence[int]],
    ranks: Optional[Sequence[int]],
) -> np.ndarray:
    """Returns the sum of contributions by a schedule, in the type in which they are added.

    The last axis of a contribution counts the elements. The other arguments are those of reduced().

    Raises:
        ValueError: The arguments do not fit each other.
    """
    workers, total = len(contributions), np.empty_like(contributions[0])
    if schedule["ranks"] != workers:
        raise ValueError(f"the schedule is for {schedule['ranks']} workers, not {workers}")
    if sorted(ranks or range(workers)) != list(range(workers)):
        raise ValueError(f"each worker needs a rank of its own from 0 to {workers - 1}, not {list(ranks or ())}")
    elements = total.shape[-1]
    if partitions is None or sum(partitions) != elements:
        raise ValueError(f"sums by '{schedule['algorithm']}' need partitions of {elements} elements in all")
    by_rank = [contributions[worker] for worker in np.argsort(list(ranks or range(workers)))]
    sizes = np.array(partitions, dtype=np.int64)
    begins = np.cumsum(sizes) - sizes
    for size in np.unique(sizes):  # all partitions of one size at once
        where = begins[sizes == size, None] + np.arange(size)
        total[..., where] = execute(schedule, [vector[..., where] for vector in by_rank])
    return total


def expected(
    seed: int,
    step: int,
    workers: int,
    elements: int,
    dtype: str = "fp32",
    schedule: Optional[Schedule] = None,
    partitions: Optional[Sequence[int]] = None,
    local_ranks: int = 1,
    ranks: Optional[Sequence[int]] = None,
    first: int = 0,
    average: bool = False,
) -> np.ndarray:
    """Returns the sum of a tensor of `gleaner bench push-pull` whose first element has number `first`, as stored.

    Other arguments are those of data() and reduced().
    """
    values = [data(seed, step, rank, elements, dtype, first) for rank in range(workers * local_ranks)]
    return reduced(values, dtype, schedule, partitions, local_ranks, ranks, average)


def sha256(sums: Iterable[np.ndarray]) -> str:
    """Returns the digest of the sums of all tensors, in generation order."""
    digest = hashlib.sha256()
    for each in sums:
        digest.update(each.tobytes())
    return digest.hexdigest()


def find_gleaner() -> str:
    """Returns the path of the program `gleaner`: that of $PATH, or of the build of this source tree."""
    built = Path(__file__).resolve().parents[1] / "build" / "release" / "bin" / "gleaner"
    found = shutil.which("gleaner") or (str(built) if built.exists() else None)
    if found is None:
        raise ValueError("cannot find the program gleaner, which makes schedules; give --gleaner PATH")
    return found


def schedule_of(plan: dict[str, Any], workers: int, gleaner: Optional[str] = None) -> Optional[Schedule]:
    """Returns the schedule of a plan that gleaner.tensor_plan() has returned, from `gleaner schedule`; None: summers.

    Of the plan's fields only "algorithm" is required.

    Raises:
        ValueError: `gleaner schedule` makes no such schedule; the message is its own.
    """
    if plan["algorithm"] == "summers":
        return None
    command = [gleaner or find_gleaner(), "schedule", "--algorithm", plan["algorithm"], "--ranks", str(workers)]
    if plan.get("radix"):
        command += ["--radix", str(plan["radix"])]
    for field in ("stages", "group_sizes", "global_chunks", "local_chunks"):
        if plan.get(field):
            command += [f"--{field.replace('_', '-')}", ",".join(map(str, plan[field]))]
    done = subprocess.run([*command, "-o", "json"], capture_output=True, text=True)
    if done.returncode != 0:
        raise ValueError(done.stderr.strip() or f"{' '.join(command)} ended with status {done.returncode}")
    return json.loads(done.stdout)


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"'{path}' is no JSON: {error}") from error


def parse_bytes(text: str) -> int:
    match = re.fullmatch(r"(\d+)\s*(?:([KMGT])(i?)B|B)?", text)
    if not match:
        raise argparse.ArgumentTypeError(f"'{text}' is no size; give one as 4096, 64KiB, or 1MB")
    number, prefix, binary = match.groups()
    return int(number) * (1024 if binary else 1000) ** (" KMGT".index(prefix) if prefix else 0)


def parse_list(text: str) -> list[int]:
    if not re.fullmatch(r"\d+(,\d+)*", text):
        raise argparse.ArgumentTypeError(f"'{text}' is no list; give whole numbers with commas between them, as 3,2,2")
    return [int(word) for word in text.split(",")]


def tensors_of(arguments: argparse.Namespace) -> list[tuple[int, str]]:
    """Returns elements and data type of each tensor, in generation order."""
    entries = read_json(arguments.tensors) if arguments.tensors else [{"bytes": arguments.bytes}]
    tensors = []
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("bytes"), int):
            raise ValueError(
                f'\'{arguments.tensors}\': expected a list of {{"name", "bytes"}}, got the entry {entry!r}'
            )
        dtype = arguments.dtype or entry.get("dtype") or ("fp16" if entry["bytes"] % 4 else "fp32")
        if dtype not in DATA_TYPES:
            raise ValueError(f"'{arguments.tensors}': expected a \"dtype\" of {', '.join(DATA_TYPES)}, got {dtype!r}")
        elements, rest = divmod(entry["bytes"], DATA_TYPES[dtype].stored.itemsize)
        if rest:
            raise ValueError(f"{entry['bytes']} bytes are not a whole number of {dtype} elements")
        tensors.append((elements, dtype))
    return tensors


def plans_of(arguments: argparse.Namespace, tensors: int) -> list[dict[str, Any]]:
    """Returns the plan of each tensor."""
    if arguments.plans is None and arguments.strategy == "auto":
        raise ValueError("auto chooses by tensor: give --plans with what gleaner.tensor_plan() returns in the job")
    if arguments.plans is None:
        given = {"algorithm": arguments.strategy, "stages": arguments.stages, "radix": arguments.radix}
        return [{**given, "ranks": arguments.ranks}] * tensors
    plans = read_json(arguments.plans)
    plans = plans if isinstance(plans, list) else [plans]
    if not all(isinstance(plan, dict) and "algorithm" in plan for plan in plans):
        raise ValueError(f"'{arguments.plans}' has not what gleaner.tensor_plan() returns")
    if len(plans) != tensors:
        raise ValueError(f"'{arguments.plans}' has {len(plans)} plans for {tensors} tensors; give one for each")
    return plans


def partitions_of(
    arguments: argparse.Namespace, plan: dict[str, Any], elements: int, dtype: str, schedule: Optional[Schedule]
) -> Optional[list[int]]:
    """Returns the numbers of elements of a tensor's partitions; None: its bits do not depend on them."""
    if schedule is None or is_gather(schedule):
        return None
    if "partition_bytes" in plan:
        sizes, element = plan["partition_bytes"], DATA_TYPES[dtype].stored.itemsize
        if not (isinstance(sizes, list) and all(isinstance(size, int) and size > 0 for size in sizes)):
            raise ValueError(f"'partition_bytes' is {sizes!r}; gleaner.tensor_plan() has a list of sizes there")
        return [size // element for size in sizes]
    if arguments.partition_bytes is None:
        raise ValueError(
            f"bits by '{plan['algorithm']}' follow from the partitions: give the job's --partition-bytes, or --plans "
            "with what gleaner.tensor_plan() returns in the job"
        )
    return cut(elements, dtype, arguments.partition_bytes, schedule, arguments.local_ranks)


def sums_of(arguments: argparse.Namespace) -> Iterator[np.ndarray]:
    """Yields the sum of each tensor."""
    tensors, first = tensors_of(arguments), 0
    for (elements, dtype), plan in zip(tensors, plans_of(arguments, len(tensors))):
        schedule = schedule_of(plan, arguments.workers, arguments.gleaner)
        partitions = partitions_of(arguments, plan, elements, dtype, schedule)
        shape = (arguments.seed, arguments.steps - 1, arguments.workers, elements, dtype)
        yield expected(*shape, schedule, partitions, arguments.local_ranks, plan.get("ranks"), first)
        first += elements


def parse_arguments(words: Optional[Sequence[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Prints the SHA-256 that `gleaner bench push-pull` prints, computed with numpy and without a job. "
        "Takes flags of the job and of the bench."
    )
    parser.add_argument("--workers", type=int, required=True, metavar="N", help="workers of the job")
    parser.add_argument("--local-ranks", type=int, default=1, metavar="G", help="ranks of each worker [default: 1]")
    parser.add_argument("--strategy", default="summers", help="strategy that sums all tensors [default: summers]")
    parser.add_argument("--stages", type=parse_list, help="stages of blueconnect, racks or two-level, as 3,2,2")
    parser.add_argument("--radix", type=int, help="radix of bcube")
    parser.add_argument("--ranks", type=parse_list, help="rank of each worker, as 2,0,1 [default: worker i has rank i]")
    parser.add_argument("--partition-bytes", type=parse_bytes, metavar="SIZE", help="the job's --partition-bytes")
    parser.add_argument(
        "--plans",
        type=Path,
        metavar="FILE",
        help="JSON of what gleaner.tensor_plan() returns, for several tensors in a list, in place of the flags above",
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--bytes", type=parse_bytes, metavar="SIZE", help="size of the only tensor")
    which.add_argument("--tensors", type=Path, metavar="FILE", help="list of tensors, as of the bench")
    parser.add_argument("--dtype", choices=DATA_TYPES, help="type of all tensors [default: that of the file, or fp32]")
    parser.add_argument("--seed", type=int, default=1, help="seed of the data [default: 1]")
    parser.add_argument("--steps", type=int, default=10, help="steps of the bench, whose last one counts [default: 10]")
    parser.add_argument(
        "--gleaner", metavar="PATH", help="the program gleaner [default: that of $PATH, or of the build]"
    )
    arguments = parser.parse_args(words)
    for name in ("workers", "local_ranks", "steps"):
        if getattr(arguments, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1")
    if not 0 <= arguments.seed < 1 << 64:
        parser.error("--seed must be 0 to 2^64 - 1")
    return arguments


def main() -> None:
    arguments = parse_arguments()
    try:
        print(sha256(sums_of(arguments)))
    except (ValueError, OSError) as error:
        print(f"bench_reference.py: {error}", file=sys.stderr)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
