"""Tests backend gleaner of torch.distributed: all checks of its programs, and a rank that is lost."""

from __future__ import annotations

import functools
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import PROGRAMS, assert_passed, checks_of, run_job, run_ranks

torch = pytest.importorskip("torch")

PROGRAM = "distributed_checks.py"
MESSAGES = "distributed_messages_checks.py"
COMPRESSION = "distributed_compression.py"
PROGRAM_2 = "distributed_torch_2_checks.py"
LOST = "distributed_lost.py"
DIFFERENCES = "distributed_differences.py"
SETTINGS = {  # by difference: settings of the two ranks, which their errors name
    "seed": ("Compression.random_k(kept=16, seed=0)", "Compression.random_k(kept=16, seed=1)"),
    "later_compression": ("Compression.none", "Compression.bf16"),
    "compression_of_one_rank": ("Compression.fp16", "Compression.none"),
}
RANKS = 3
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def run() -> Run:
    """Returns a function that runs the checks by a launcher, and each launcher once."""
    launchers: dict[str, Callable[[str], subprocess.CompletedProcess[str]]] = {
        "gleaner run": lambda program: run_job(program, workers=RANKS, summers=0),
        "gleaner run with summers": lambda program: run_job(program, workers=RANKS, summers=2),
        "environment": lambda program: run_ranks(program, RANKS),
    }
    return functools.cache(lambda launcher, program=PROGRAM: launchers[launcher](program))


@pytest.mark.parametrize("launcher", ["gleaner run", "gleaner run with summers", "environment"])
@pytest.mark.parametrize("check", checks_of(PROGRAM))
def test_distributed(run: Run, launcher: str, check: str) -> None:
    assert_passed(run(launcher), check, ranks=RANKS)


@pytest.mark.parametrize("launcher", ["gleaner run", "gleaner run with summers", "environment"])
def test_ends_well(run: Run, launcher: str) -> None:
    assert run(launcher).returncode == 0, run(launcher).stdout + run(launcher).stderr


@pytest.mark.parametrize("launcher", ["gleaner run", "environment"])
@pytest.mark.parametrize("check", checks_of(MESSAGES))
def test_messages(run: Run, launcher: str, check: str) -> None:
    assert_passed(run(launcher, MESSAGES), check, ranks=RANKS)


@pytest.mark.parametrize("check", checks_of(COMPRESSION))
def test_compression(run: Run, check: str) -> None:
    assert_passed(run("gleaner run with summers", COMPRESSION), check, ranks=RANKS)


@pytest.mark.skipif(torch.__version__ < "2", reason="the checks need PyTorch 2")
@pytest.mark.parametrize("launcher", ["gleaner run with summers", "environment"])
@pytest.mark.parametrize("check", checks_of(PROGRAM_2))
def test_distributed_with_torch_2(run: Run, launcher: str, check: str) -> None:
    assert_passed(run(launcher, PROGRAM_2), check, ranks=RANKS)
    assert run(launcher, PROGRAM_2).returncode == 0


@pytest.mark.skipif(not hasattr(torch.distributed, "_reconfigure"), reason="this PyTorch has no reconfigure()")
def test_groups_change_their_ranks() -> None:
    done = run_ranks("distributed_reconfigure.py", 4, "gleaner")
    assert done.stdout.count("reconfigured\n") == 3, done.stdout


@pytest.mark.skipif(not hasattr(torch.distributed, "_reconfigure"), reason="this PyTorch has no reconfigure()")
def test_groups_of_elastic_jobs_change_their_ranks(tmp_path: Path) -> None:
    done = run_job("distributed_rounds.py", str(tmp_path / "store"), workers=3, summers=1, flags=("--min-workers", "2"))
    assert len(re.findall(r"reconfigured$", done.stdout, re.MULTILINE)) == 2, done.stdout + done.stderr


def names_in(program: str) -> list[str]:
    """Returns the keys of a program's dictionary."""
    lines = (PROGRAMS / program).read_text().splitlines()
    return [line.split('"')[1] for line in lines if line.startswith('    "')]


@pytest.mark.parametrize("collective", names_in(LOST))
def test_lost_ranks_are_named(collective: str) -> None:
    done = run_job(LOST, collective, workers=2, summers=0)
    assert "worker 1" in done.stdout.partition("lost: ")[2], done.stdout + done.stderr


def test_lost_ranks_are_named_without_a_launcher_of_gleaner() -> None:
    done = run_ranks(LOST, 2, "all_reduce")
    assert "worker 1" in done.stdout.partition("lost: ")[2], done.stdout + done.stderr


@pytest.mark.parametrize("difference", names_in(DIFFERENCES))
def test_ranks_that_differ_get_errors(difference: str) -> None:
    ranks = 3 if difference.endswith("in_parts") else 2  # two ranks reduce small tensors in one call
    done = run_job(DIFFERENCES, difference, workers=ranks, summers=0)
    errors = re.findall(r"^\[worker \d\] error: .*", done.stdout, re.MULTILINE)
    assert len(errors) == ranks, done.stdout + done.stderr
    assert "Timed out" not in done.stdout
    assert all(setting in error for error in errors for setting in SETTINGS.get(difference, ())), errors


def test_jobs_with_local_ranks_are_refused() -> None:
    done = run_job(PROGRAM, workers=1, local_ranks=2)
    assert "--local-ranks" in done.stderr and done.returncode == 1


def test_no_zombie_of_the_coordinator_is_left() -> None:
    done = run_ranks("distributed_reaped.py", 1)
    assert done.returncode == 0 and "reaped" in done.stdout, done.stdout
