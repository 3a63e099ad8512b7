"""Runs command lines of `gleaner` as users write them, in shells, scripts and files that are not as clean as tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
from conftest import GLEANER, PATIENT_RUN, TIMEOUT, environment  # noqa: E402


def shell(line: str) -> subprocess.CompletedProcess[str]:
    """Runs a line of a shell in which `gleaner` is the program under test."""
    path = f"{GLEANER.parent}:{environment()['PATH']}"
    return subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, timeout=TIMEOUT, env=environment(PATH=path)
    )


@pytest.mark.parametrize("arguments", ["--help", "run --help", "--version", "bench sum --help", "completion bash"])
@pytest.mark.parametrize("output", [">/dev/full", ">&-"])
def test_lost_output_is_an_error(arguments: str, output: str) -> None:
    done = shell(f"gleaner {arguments} {output}")
    assert done.returncode == 1, done
    assert "cannot write to standard output" in done.stderr


@pytest.mark.parametrize("separator", ["--", ""])
def test_arguments_of_a_program_arrive_unchanged(separator: str) -> None:
    words = ["[1,2]", "[]", "--shape=[3, 4]", "[a b]", "{}", "%%", "", "--", "--workers", "9"]
    echo = [sys.executable, "-c", "import sys; print(sys.argv[1:])", *words]
    command = [str(GLEANER), "run", "--workers", "1", *(word for pair in PATIENT_RUN.items() for word in pair)]
    command += [separator] * bool(separator) + echo
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, env=environment())
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"[worker 0] {words}\n"
