"""Tests examples/gradientflow.py, and that the summary of a job tells the bytes that compression saves."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, run_job

pytest.importorskip("torch")
TRAIN = ROOT / "examples" / "gradientflow.py"
BYTES = 4 * 826_378  # of all gradients
GRADIENTS = 10
CHUNKS = 26


def trained(tmp_path: Path, *flags: str) -> tuple[int, dict[str, Any]]:
    """Trains two epochs. Returns the bytes of a step of the second one, and the summary of the job."""
    path = tmp_path / "summary.json"
    done = run_job(TRAIN, "--epochs", "2", *flags, flags=("--summary", str(path), "--no-prefix"))
    assert done.returncode == 0, done.stdout + done.stderr
    epochs = re.findall(r"^epoch \d/2  loss ([\d.]+)  ([\d,]+) B a step  [\d.]+ s$", done.stdout, re.MULTILINE)
    assert float(epochs[1][0]) < float(epochs[0][0]), done.stdout
    return int(epochs[1][1].replace(",", "")), json.loads(path.read_text())


def test_compression_and_fusion(tmp_path: Path) -> None:
    sent, summary = trained(tmp_path, "--compression", "bf16", "--fusion-bytes", "inf")
    assert sent == pytest.approx(BYTES / 2, rel=1e-3)
    assert summary["dense_bytes_per_step"] == pytest.approx(2 * summary["bytes_per_step"], rel=1e-3)
    assert summary["tensors"] < GRADIENTS


def test_sparsity(tmp_path: Path) -> None:
    sent, summary = trained(tmp_path, "--sparsity", "0.85")
    assert sent == pytest.approx(BYTES * 4 / CHUNKS, rel=0.05)
    assert summary["dense_bytes_per_step"] == pytest.approx(BYTES, rel=0.05)
