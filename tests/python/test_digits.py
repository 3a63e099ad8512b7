"""Tests examples/digits/train.py as an interrupted job: it resumes from its checkpoint, and ends with the same bits."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, TIMEOUT, environment, run_job

pytest.importorskip("sklearn")
TRAIN = ROOT / "examples" / "digits" / "train.py"


def train(folder: Path, epochs: int, workers: int = 2) -> str:
    result = str(folder / "result.json")
    done = run_job(TRAIN, "--epochs", str(epochs), "--checkpoint", str(folder), "--result", result, workers=workers)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_resumes_with_the_same_bits(tmp_path: Path) -> None:
    assert "resumed" not in train(tmp_path, 1)
    assert "resumed after epoch 1" in train(tmp_path, 2)
    resumed = json.loads((tmp_path / "result.json").read_text())
    reference = tmp_path / "reference.json"
    command = [sys.executable, str(TRAIN), "--epochs", "2", "--reference", "2", "--result", str(reference)]
    subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT, env=environment())
    assert resumed["sha256"] == json.loads(reference.read_text())["sha256"]
    assert "epoch  " not in train(tmp_path, 2, workers=1), "nothing is left to train"
    assert json.loads((tmp_path / "result.json").read_text())["sha256"] == resumed["sha256"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["digits.pt", "reference.json", "result.json"]
