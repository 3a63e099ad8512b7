"""Tests the command `gleaner schedule`: runs its JSON with an interpreter of its own, and compares with plain sums.

The binary is in GLEANER_BIN_DIR, or in the build that GLEANER_BUILD names (default: build/release)."""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict, deque
from itertools import pairwise
from typing import Any

import pytest
from conftest import GLEANER, TIMEOUT, require_build

COLLECTIVES = {
    "reduce": ["binomial"],
    "broadcast": ["binomial", "scatter-ring"],
    "all-gather": ["ring", "gather", "direct"],
    "reduce-scatter": ["ring", "halving", "direct"],
    "gather": ["direct", "binomial"],
    "scatter": ["direct", "binomial"],
    "all-to-all": ["direct"],
}
ROOTED = ("reduce", "broadcast", "gather", "scatter")
ALGORITHMS = ["ring", "halving-doubling", "double-tree", "bcube", "blueconnect", "racks", "two-level"]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    require_build()
    command = [str(GLEANER), "schedule", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)


def shown(*arguments: object) -> str:
    done = run(*arguments)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout


def schedule_of(algorithm: str, ranks: int, *arguments: object) -> dict[str, Any]:
    return json.loads(shown("--algorithm", algorithm, "--ranks", ranks, *arguments, "-o", "json"))


def execute(schedule: dict[str, Any], vectors: list[list[int]]) -> None:
    """Runs the programs on vectors of one number for each chunk. A receive waits until its message is there."""
    under_way: dict[tuple[int, int], deque[tuple[list[int], list[int]]]] = defaultdict(deque)
    at = [0] * schedule["ranks"]
    moved = True
    while moved:
        moved = False
        for rank, program in enumerate(schedule["programs"]):
            while at[rank] < len(program):
                op = program[at[rank]]
                first, count = op["slice"]
                if op["op"] == "send":
                    under_way[rank, op["peer"]].append((op["slice"], vectors[rank][first : first + count]))
                else:
                    messages = under_way[op["peer"], rank]
                    if not messages:
                        break
                    sent, values = messages.popleft()
                    assert sent == op["slice"]
                    for i, value in enumerate(values, first):
                        vectors[rank][i] = vectors[rank][i] + value if op["reduce"] else value
                at[rank] += 1
                moved = True
    assert at == [len(program) for program in schedule["programs"]], "ranks wait for ever"
    assert not any(under_way.values()), "a message was not received"


@pytest.mark.parametrize(
    ("algorithm", "ranks", "arguments"),
    [
        ("ring", 7, []),
        ("halving-doubling", 8, []),
        ("halving-doubling", 11, []),
        ("double-tree", 13, []),
        ("double-tree", 16, ["--blocks", 3]),
        ("bcube", 16, []),
        ("bcube", 27, ["--radix", 3]),
        ("blueconnect", 12, ["--stages", "3,2,2"]),
        ("blueconnect", 96, ["--stages", "16,6"]),
        ("racks", 12, ["--stages", "3,4"]),
        ("two-level", 12, ["--stages", "3,4"]),
        ("two-level", 14, []),
        ("racks", 8, ["--group-sizes", "3,5"]),
        ("two-level", 6, ["--group-sizes", "2,4"]),
        ("two-level", 4, ["--stages", "2,2", "--global-chunks", "3,1,2,0", "--local-chunks", "4,2,5,1"]),
    ],
)
def test_every_rank_gets_the_sum(algorithm: str, ranks: int, arguments: list[object]) -> None:
    schedule = schedule_of(algorithm, ranks, *arguments)
    assert schedule["algorithm"] == algorithm and schedule["ranks"] == ranks
    chunks = schedule["chunks"]
    vectors = [[(rank + 1) ** 3 * 1009 + chunk for chunk in range(chunks)] for rank in range(ranks)]
    sums = [sum(column) for column in zip(*vectors, strict=True)]
    execute(schedule, vectors)
    assert vectors == [sums] * ranks


def begins_with(collective: str, ranks: int, root: int, rank: int, chunk: int) -> bool:
    """Whether a rank contributes to a chunk, by the table of docs/schedules.md."""
    if collective in ("reduce", "reduce-scatter"):
        return True
    if collective in ("broadcast", "scatter"):
        return rank == root
    return rank == (chunk // ranks if collective == "all-to-all" else chunk)


def ends_with(collective: str, ranks: int, root: int, rank: int, chunk: int) -> bool:
    if collective in ("reduce", "gather"):
        return rank == root
    if collective in ("reduce-scatter", "scatter", "all-to-all"):
        return chunk % ranks == rank
    return True


@pytest.mark.parametrize(
    ("collective", "algorithm"), [(name, each) for name, algorithms in COLLECTIVES.items() for each in algorithms]
)
def test_every_collective_has_its_postcondition(collective: str, algorithm: str) -> None:
    ranks, root = 8 if algorithm == "halving" else 7, 5 if collective in ROOTED else 0
    arguments = ["--collective", collective, *(["--root", root] if root else [])]
    schedule = schedule_of(algorithm, ranks, *arguments)
    assert schedule["postcondition"] == collective and schedule["algorithm"] == algorithm
    assert schedule.get("root") == (root if root else None)
    chunks = range(schedule["chunks"])
    place = (collective, ranks, root)
    vectors = [[10**rank if begins_with(*place, rank, chunk) else -1 for chunk in chunks] for rank in range(ranks)]
    execute(schedule, vectors)
    for rank, vector in enumerate(vectors):
        for chunk in chunks:
            if ends_with(*place, rank, chunk):
                assert vector[chunk] == sum(10**r for r in range(ranks) if begins_with(*place, r, chunk))


def test_both_sides_say_how_a_message_is_taken() -> None:
    schedule = schedule_of("ring", 4)
    ops = [op for program in schedule["programs"] for op in program]
    taken = [sum(op["reduce"] for op in ops if op["op"] == side) for side in ("send", "receive")]
    assert taken == [12, 12]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_steps_ascend_and_stages_name_ranks(algorithm: str) -> None:
    schedule = schedule_of(algorithm, 16, *(["--stages", "4,4"] if algorithm == "racks" else []))
    for program in schedule["programs"]:
        steps = [op["step"] for op in program]
        assert all(a <= b for a, b in pairwise(steps)) and steps[-1] == schedule["steps"] - 1
    hierarchical = algorithm in ("bcube", "blueconnect", "racks", "two-level")
    assert ("stages" in schedule) == hierarchical
    if hierarchical:
        assert sorted(rank for group in schedule["stages"][0] for rank in group) == list(range(16))


def test_stages_of_blueconnect() -> None:
    """The example of BlueConnect's Figure 2: 12 = 3 x 2 x 2."""
    stages = schedule_of("blueconnect", 12, "--stages", "3,2,2")["stages"]
    assert [len(stage) for stage in stages] == [4, 6, 6]
    assert stages[0][0] == [0, 1, 2] and stages[1][0] == [0, 3] and stages[2][0] == [0, 6]


def test_one_rank_has_nothing_to_do() -> None:
    for algorithm in ALGORITHMS:
        arguments = ["--stages", "1,1"] if algorithm == "racks" else []
        schedule = schedule_of(algorithm, 1, *arguments)
        assert schedule["programs"] == [[]] and schedule["steps"] == 0
        assert "1 rank, " in shown("--algorithm", algorithm, "--ranks", 1, *arguments)


def test_table_shows_bytes_and_time() -> None:
    table = shown("--algorithm", "ring", "--ranks", 8)
    assert "ring: 8 ranks, 8 chunks, 14 steps, 112 messages" in table
    assert "each rank sends 1.7500 and receives 1.7500" in table
    assert "14 a + 1.7500 S/B" in table
    assert "0 to 1, 1 to 2" in table
    table = shown("--algorithm", "racks", "--ranks", 8, "--stages", "2,4")
    assert "sends 1.0000 to 4.0000" in table and "stage 0: 2 groups of 4: [0 1 2 3] [4 5 6 7]" in table
    table = shown("--collective", "gather", "--algorithm", "direct", "--ranks", 4, "--root", 2)
    assert "direct: 4 ranks, root 2, 4 chunks, 1 step, 3 messages" in table
    assert "of a block's S bytes, each rank sends 0.0000 to 1.0000 and receives 0.0000 to 3.0000" in table


def test_large_schedules_are_written_whole() -> None:
    schedule = schedule_of("ring", 150)
    assert [len(program) for program in schedule["programs"]] == [4 * 149] * 150


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give --algorithm, one of ring, halving-doubling, double-tree, bcube, blueconnect, gather, racks, two-"),
        (["--algorithm", "ring"], "give --ranks N"),
        (["--algorithm", "rings", "--ranks", "2"], "--algorithm"),
        (["--algorithm", "ring", "--ranks", "0"], "--ranks"),
        (["--algorithm", "ring", "--ranks", "65537"], "--ranks"),
        (
            ["--algorithm", "ring", "--ranks", "60000"],
            "--ranks 60000: the schedule of ring among 60000 ranks",
        ),
        (
            ["--algorithm", "ring", "--ranks", "4", "--stages", "2,2"],
            "--stages 2,2: ring has no stages; only",
        ),
        (["--algorithm", "blueconnect", "--ranks", "12", "--stages", "3,x"], "--stages: 'x' is no number of ranks"),
        (["--algorithm", "blueconnect", "--ranks", "12", "--stages", "3,,4"], "--stages: '' is no number of ranks"),
        (["--algorithm", "blueconnect", "--ranks", "12", "--stages", "3,5"], "give factors of 12, for example 2,2,3"),
        (["--algorithm", "racks", "--ranks", "12", "--stages", "5,2"], "give factors of 12, for example 2,2,3"),
        (["--algorithm", "bcube", "--ranks", "12", "--radix", "5"], "--radix 5: bcube needs a power of the radix"),
        (["--algorithm", "bcube", "--ranks", "12", "--radix", "1"], "--radix"),
        (
            ["--algorithm", "bcube", "--ranks", "8", "--blocks", "2"],
            "--blocks 2: bcube has no blocks; only double-tree",
        ),
        (["--algorithm", "racks", "--ranks", "8", "--group-sizes", "3,4"], "--group-sizes 3,4: rank 7 is in no group"),
        (["--algorithm", "ring", "--ranks", "8", "--group-sizes", "3,5"], "--group-sizes 3,5: ring has no groups"),
        (["--algorithm", "racks", "--ranks", "8", "--group-sizes", "3,x"], "--group-sizes: 'x' is no number"),
        (
            ["--algorithm", "two-level", "--ranks", "4", "--global-chunks", "1,1", "--local-chunks", "2,2"],
            "--global-chunks 1,1 --local-chunks 2,2: ",
        ),
        (["--algorithm", "ring", "--ranks", "4", "-o", "yaml"], "--output"),
        (["--collective", "barrier", "--algorithm", "ring", "--ranks", "4"], "--collective"),
        (["--collective", "broadcast", "--ranks", "4"], "give --algorithm, one of binomial, scatter-ring"),
        (
            ["--collective", "broadcast", "--algorithm", "ring", "--ranks", "4"],
            "--algorithm ring: broadcast has no algorithm 'ring'; give one of binomial, scatter-ring",
        ),
        (["--algorithm", "binomial", "--ranks", "4"], "--algorithm binomial: all-reduce has no algorithm 'binomial'"),
        (["--collective", "reduce", "--algorithm", "binomial", "--ranks", "4", "--root", "4"], "--root 4: the root is"),
        (["--algorithm", "ring", "--ranks", "4", "--root", "0"], "--root 0: all-reduce has no root; only reduce, "),
        (
            ["--collective", "all-to-all", "--algorithm", "direct", "--ranks", "1025"],
            "--ranks 1025: the number of ranks is 1025; give 1 to 1024, the most that all-to-all supports",
        ),
        (
            ["--collective", "reduce-scatter", "--algorithm", "halving", "--ranks", "6"],
            "--ranks 6: halving needs a power of two as the number of ranks; 6 is none",
        ),
    ],
)
def test_errors_name_the_flag(arguments: list[str], message: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert message in done.stderr
