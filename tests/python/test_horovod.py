"""Tests gleaner.horovod.torch: the decisions of the negotiation alone, and all names in real jobs."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable, Iterable

import pytest
from conftest import ROOT, assert_passed, checks_of, run_job, run_ranks

pytest.importorskip("torch")
sys.path.insert(0, str(ROOT / "comm-lib" / "python"))
from gleaner.horovod.torch.fusion import MOST_ELEMENTS, MOST_FUSED_ELEMENTS, fused  # noqa: E402
from gleaner.horovod.torch.negotiation import JOIN, Decision, Description, Negotiation  # noqa: E402

Run = Callable[[], subprocess.CompletedProcess[str]]
PROGRAM = "horovod_checks.py"
WORKERS = 3


@pytest.fixture(scope="module")
def run() -> Run:
    """Returns a function that runs the checks. It runs them once."""
    return functools.cache(lambda: run_job(PROGRAM, workers=WORKERS, summers=1))


@pytest.mark.parametrize("check", checks_of(PROGRAM))
def test_names(run: Run, check: str) -> None:
    assert_passed(run(), check, ranks=WORKERS)


def test_ends_well(run: Run) -> None:
    assert run().returncode == 0, run().stderr


def test_names_under_torchrun() -> None:
    done = run_ranks(PROGRAM, WORKERS)
    assert done.returncode == 0, done.stdout
    for check in checks_of(PROGRAM):
        assert_passed(done, check, ranks=WORKERS)


def decided(*descriptions: Description, error: str = "") -> list[Decision]:
    return [Decision(each.name, (each, each), error) for each in descriptions]


def names_of(batches: Iterable[list[Decision]]) -> list[list[str]]:
    return [[each.name for each in batch] for batch in batches]


def test_small_sums_of_a_round_are_fused() -> None:
    others = [*decided(Description("barrier", "d")), *decided(*sums("e", "f")), *decided(*sums("g"), error="wrong")]
    assert names_of(fused([*decided(*sums("a", "b", "c")), *others, *decided(*sums("h"))])) == [
        ["a", "b", "c"],
        ["d"],
        ["e", "f"],
        ["g"],
        ["h"],
    ]
    means = [Description("allreduce", "m", ("float32",), ((2,),), ("cpu",), "Average")]
    assert names_of(fused([*decided(*sums("a")), *decided(*means)])) == [["a"], ["m"]]


def test_large_sums_are_not_fused() -> None:
    def of(name: str, elements: int) -> Description:
        return Description("allreduce", name, ("float32",), ((elements,),), ("cpu",), "Sum")

    large = of("large", MOST_ELEMENTS + 1)
    assert names_of(fused(decided(of("a", 1), large, of("b", 1)))) == [["a"], ["large"], ["b"]]
    many = [of(str(i), MOST_ELEMENTS) for i in range(6)]
    assert [len(batch) for batch in fused(decided(*many))] == [MOST_FUSED_ELEMENTS // MOST_ELEMENTS, 2]


def test_local_ranks_are_refused() -> None:
    done = run_job(PROGRAM, workers=1, local_ranks=2, summers=0)
    assert done.returncode != 0
    assert "one worker for each rank" in done.stderr


def sums(*names: str, **more: object) -> list[Description]:
    return [Description("allreduce", name, ("float32",), ((2,),), ("cpu",), "Sum", **more) for name in names]


def join() -> list[Description]:
    return [Description(JOIN, JOIN)]


def test_operations_start_when_all_ranks_have_them() -> None:
    negotiation = Negotiation(3)
    assert negotiation.add([sums("a", "b"), sums("b"), []]) == []
    assert [each.name for each in negotiation.add([[], [], sums("b", "a")])] == ["b"]
    assert [each.name for each in negotiation.add([[], sums("a"), []])] == ["a"]
    assert negotiation.add([[], [], []]) == []


def test_decisions_have_one_order_on_all_ranks() -> None:
    negotiation = Negotiation(2)
    assert [each.name for each in negotiation.add([sums("a", "b", "c"), sums("c", "b", "a")])] == ["a", "b", "c"]


def test_differences_fail_the_operation_only() -> None:
    negotiation = Negotiation(2)
    failed, fine = negotiation.add([sums("a", "b"), [*sums("a", root=1), *sums("b")]])
    assert "different root rank: rank 0 of the process set has 0, rank 1 has 1" in failed.error
    assert fine.error == ""


def test_ranks_may_differ_in_rows() -> None:
    rows = [Description("allgather", "a", ("int8",), ((count, 3),), ("cpu",)) for count in (1, 2)]
    (decision,) = Negotiation(2).add([[each] for each in rows])
    assert decision.error == ""
    assert [each.shapes for each in decision.by_rank] == [((1, 3),), ((2, 3),)]


def test_joined_ranks_are_not_waited_for() -> None:
    negotiation = Negotiation(2)
    assert negotiation.add([join(), []]) == []
    (decision,) = negotiation.add([[], sums("a")])
    assert (decision.by_rank[0], decision.error) == (None, "")
    (barrier,) = negotiation.add([[], [Description("barrier", "b")]])
    assert "rank 0 joined" in barrier.error
    (ended,) = negotiation.add([[], join()])
    assert (ended.name, ended.last) == (JOIN, 1)
    assert negotiation.add([[], sums("c")]) == []  # the next round of data begins without joined ranks


def test_elastic_training_goes_on() -> None:
    done = run_job("horovod_elastic.py", workers=3, summers=0, flags=("--min-workers", "1"))
    assert done.returncode == 0, done.stdout + done.stderr
    # The average of the gradients is 2 with three ranks, for five steps, then 1.5 with two.
    assert done.stdout.count("ended with 2 ranks and weight 17.5") == 2, done.stdout + done.stderr
