"""Tests the figures of steps in the summary: the bytes of a step, and the wait for a late rank."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import run_job

pytest.importorskip("torch")
WORKERS = 3
ROLL_NUMBERS_OF_RANK = 5  # gleaner/torch/roll_call.py


def summary_of(tmp_path: Path, *arguments: str) -> tuple[dict[str, Any], int]:
    """Runs evaluating.py. Returns the summary, and the bytes of a step: of all gradients, and of the roll call."""
    path = tmp_path / "summary.json"
    done = run_job("evaluating.py", *arguments, workers=WORKERS, flags=("--summary", str(path), "--no-prefix"))
    assert done.returncode == 0, done.stdout + done.stderr
    words = done.stdout.split("gradients ")[1].split()
    return json.loads(path.read_text()), int(words[0]) + 4 * (int(words[2]) + ROLL_NUMBERS_OF_RANK * WORKERS)


@pytest.mark.parametrize(
    "arguments",
    [("--steps", "1"), ("--steps", "2"), ("--steps", "13"), ("--steps", "13", "--average", "20000")],
    ids=" ".join,
)
def test_bytes_per_step_are_those_of_a_step(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    summary, expected = summary_of(tmp_path, *arguments)
    if arguments == ("--steps", "1"):
        expected += 4 * 77  # a program's push_pulls before its first step belong to that step
    assert summary["bytes_per_step"] == expected
    for epoch in summary["epochs"]:
        assert epoch["bytes_per_step"] == expected
    if summary["last_minute"]["steps"]:
        assert summary["last_minute"]["bytes_per_step"] == expected
    goodput = summary["bytes_per_step"] / summary["step_communication_seconds"]
    assert summary["goodput_bytes_per_second"] == pytest.approx(goodput)


def test_bytes_per_step_of_steps_that_overlap(tmp_path: Path) -> None:
    summary, expected = summary_of(tmp_path, "--steps", "30", "--cross-barrier", "--average", "500")
    assert summary["bytes_per_step"] == expected


def test_the_wait_for_an_evaluation_of_one_rank_is_no_communication(tmp_path: Path) -> None:
    seconds = 5
    summary, expected = summary_of(tmp_path, "--steps", "14", "--evaluate-seconds", str(seconds))
    assert summary["bytes_per_step"] == expected
    waited = {each["rank"]: each["seconds"] for each in summary["waited_for"]}
    assert waited[0] > seconds / 2, summary
    assert summary["step_wait_seconds"] * summary["steps"] > seconds / 2, summary
