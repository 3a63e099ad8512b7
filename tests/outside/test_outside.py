"""Runs programs like those in which users of similar libraries found faults, each as a job of its own.

PROGRAMS says what each program of programs/ shows. To add a program, add a file and a row. The program compares its
results with those of one process, or with the error that it expects, and each rank prints "ok" at its end. A program
is as a user writes it: it imports nothing of the tests.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
from conftest import run_job  # noqa: E402


@dataclass(frozen=True)
class Program:
    """A job: the arguments `options` of run_job(), and the program's own `arguments`.

    `error` is a part of the job's standard error if the job has to fail, instead of printing "ok"; if the error is
    `caught`, every rank prints "ok" in spite of it. A program that takes 10 s or more is `long`.
    """

    file: str
    shows: str
    arguments: tuple[str, ...] = ()
    options: tuple[tuple[str, Any], ...] = (("workers", 2),)
    error: str = ""
    caught: bool = False
    long: bool = False


OTHER = "tensor 'w': in its 4th push_pull "
AT_WORKERS = f"{OTHER}worker 0 asks for its average, worker 1 for its sum; every rank must ask for the same operation"
AT_RANKS = f"{OTHER}local rank 1 of worker 0 asks for its sum, local rank 0 of worker 0 for its average; every rank"
LEFT_AFTER = "gleaner: this rank left the job after an error: "
LIMITED = (("workers", 2), ("flags", ("--declare-timeout", "8")))

PROGRAMS = (
    Program("lazy_tensors.py", "tensors that PyTorch negates or conjugates lazily are sent as their values are"),
    Program("lazy_gradients.py", "so are gradients, parameters, running sums and the state of optimizers"),
    Program("other_steps.py", "step() of other packages' optimizers gets its arguments, and its result is returned"),
    Program("nested_optimizers.py", "optimizers that contain others and step twice work, or are refused when wrapped"),
    Program("counting_optimizers.py", "counts of steps rise by one per step, wherever an optimizer keeps them"),
    Program("checkpoint_thread.py", "a second thread may read the state at any time, and gets that of one step"),
    Program("normed_weights.py", "CrossBarrier updates parameters before weight_norm() and its kind use them"),
    Program("second_derivatives.py", "backward(create_graph=True) is an error that says what to use"),
    Program(
        "failing_buckets.py", "two DDP models with one name: the error is a GleanerError", ("name",), error="caught F"
    ),
    Program(
        "failing_buckets.py", "so is that of buckets of different types", ("size",), error="caught InvalidArgument"
    ),
    Program("failing_buckets.py", "so is the loss of a rank in backward()", ("lost",), error="caught Unavailable"),
    Program("horovod_script.py", "a script in the style of Horovod's examples trains as one process does"),
    Program("missing_part.py", "a rank without ddp_hook is named", ("hook",), LIMITED, "gleaner.torch.ddp_hook)"),
    Program("missing_part.py", "so is one without the optimizer", ("optimizer",), LIMITED, "must wrap the optimizers"),
    Program("missing_part.py", "so is one without a push_pull", ("push_pull",), LIMITED, "begin the same push_pulls"),
    Program(
        "other_models.py",
        "a model with a layer more: numbers of parameters and the first name",
        ("deeper",),
        error="; only worker 1 has tensor 'optimizer.0.gradient.2.weight'",
    ),
    Program(
        "other_models.py",
        "so for a layer less",
        ("shallower",),
        error="; only worker 0 has tensor 'optimizer.0.gradient.1.weight'",
    ),
    Program(
        "other_models.py",
        "so for layers without a bias",
        ("bias",),
        error="; only worker 0 has tensor 'optimizer.0.gradient.0.bias'",
    ),
    Program(
        "other_operations.py",
        "ranks that ask for other operations later are named",
        error=f"InvalidArgumentError: {AT_WORKERS}",
    ),
    Program(
        "other_operations.py",
        "so are those of a schedule, to all ranks",
        options=(("workers", 2), ("flags", ("--strategy", "ring"))),
        error=f" left with an error: {AT_WORKERS}",
    ),
    Program(
        "other_operations.py",
        "so are local ranks",
        options=(("workers", 2), ("local_ranks", 2)),
        error=f"InvalidArgumentError: {AT_RANKS}",
    ),
    Program(
        "caught_operations.py",
        "ranks that catch this error and go on get it again, and no sum of different push_pulls",
        error=f"{LEFT_AFTER}{AT_WORKERS}",
        caught=True,
    ),
    Program(
        "caught_operations.py",
        "so do local ranks, and the other worker, whose ranks agree",
        options=(("workers", 2), ("local_ranks", 2)),
        error=f"{LEFT_AFTER}{AT_RANKS}",
        caught=True,
    ),
    Program(
        "caught_operations.py",
        "so do several other workers",
        options=(("workers", 3), ("local_ranks", 2)),
        error=f"{LEFT_AFTER}{AT_RANKS}",
        caught=True,
        long=True,
    ),
    *(
        Program(
            "stays_after_error.py",
            "ranks that agree do not wait for a worker that catches this error and stays",
            (worker,),
            options=(("workers", 2), ("local_ranks", 2)),
            error=" can't go on: tensor 'w': in its 4th push_pull local rank 1",
        )
        for worker in ("0", "1")
    ),
    Program("scaled_losses.py", "GradScaler unscales averages, and all ranks skip the same steps"),
)


def rows() -> Iterator[Any]:
    for program in PROGRAMS:
        marks = [pytest.mark.long] if program.long else []
        yield pytest.param(program, id=" ".join([program.file, *program.arguments]), marks=marks)


@pytest.mark.parametrize("program", rows())
def test_program(program: Program) -> None:
    pytest.importorskip("torch")
    options = {"timeout": 300, **dict(program.options)}
    done = run_job(HERE / "programs" / program.file, *program.arguments, **options)
    told = f"{program.shows}\n{done.stdout}\n{done.stderr}"
    assert (done.returncode != 0) == bool(program.error) and program.error in done.stderr, told
    if program.error and not program.caught:
        return
    ranks = options.get("workers", 2) * options.get("local_ranks", 1)
    ended = [line for line in done.stdout.splitlines() if line.endswith("] ok")]
    assert len(ended) == ranks, told


def test_every_program_has_a_row() -> None:
    assert {each.file for each in PROGRAMS} == {each.name for each in (HERE / "programs").glob("*.py")}
