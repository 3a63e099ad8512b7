"""Reads the output of the digits example."""

from __future__ import annotations

import re

from product import ROOT, Job

EXAMPLES = ROOT / "examples"
EPOCHS = 10
TRAIN = ["python3", "/examples/digits/train.py", "--epochs", str(EPOCHS)]
LONG = 720.0  # seconds for a training on a busy machine


def result(job: Job, pod: str) -> tuple[str, float]:
    log = job.log(pod)
    found = re.search(r"SHA-256 ([0-9a-f]{64})\s+test accuracy ([0-9.]+)%", log)
    assert found, f"{pod} printed no result:\n{log}"
    return found[1], float(found[2])


def in_epoch(job: Job, epoch: int, attempt: int = 0) -> None:
    """Waits until the training has reached the given epoch."""
    suffix = f"-r{attempt}" if attempt else ""
    job.wait_log(f"{job.name}-worker-0{suffix}", f"epoch {epoch:2d}/", LONG)
