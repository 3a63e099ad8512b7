"""Leaves a job under torchrun, and waits until this process has no child. Then prints "reaped".

The coordinator that rank 0 has started ends soon after the last rank has left. A zombie would stay a child.
"""

from __future__ import annotations

import time
from pathlib import Path

import torch.distributed as dist
from gleaner.torch.distributed import job


def children() -> list[str]:
    return [child for task in Path("/proc/self/task").iterdir() for child in (task / "children").read_text().split()]


dist.init_process_group("gleaner")
assert children(), "the coordinator is no child"
dist.destroy_process_group()
job.leave()  # PyTorch 1.13 leaves the job only when the process ends
while children():
    time.sleep(0.02)
print("reaped", flush=True)
