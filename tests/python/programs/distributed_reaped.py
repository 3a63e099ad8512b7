"""Leaves a job under torchrun, and waits until this process has no child. Then prints "reaped".

The coordinator that rank 0 has started ends soon after the last rank has left. A zombie would stay a child.
"""

from __future__ import annotations

import os
import time

import torch.distributed as dist
from gleaner.torch.distributed import job


def has_child() -> bool:
    """Returns whether this process has a child, also a zombie, which stays for another thread to reap.

    /proc/self/task/*/children would tell, too, but a file there goes with its thread, which may end while it is read.
    """
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


dist.init_process_group("gleaner")
assert has_child(), "the coordinator is no child"
dist.destroy_process_group()
job.leave()  # PyTorch 1.13 leaves the job only when the process ends
while has_child():
    time.sleep(0.02)
print("reaped", flush=True)
