"""Trains asynchronously, with rank 0 slower than the others: asynchronous.py STEPS FOLDER [STALENESS].

In the middle of the training rank 0 waits until the other ranks are as far ahead as STALENESS allows, and 11 steps
ahead without STALENESS. Then it waits until the file FOLDER/go exists. FOLDER must exist, and be empty otherwise.

The program also counts every rank's steps in a running sum. It prints "training" after the first step, and at the end a
line of JSON with the loss, a digest of the parameters, the largest number of steps by which this rank was ahead of
another rank, and the steps of all ranks."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Optional

import gleaner.torch as gln
import torch
from marks import Marks

FEATURES = 20


def main(steps: int, folder: Path, staleness: Optional[int]) -> None:
    gln.init()
    rank, size = gln.rank(), gln.size()
    marks = Marks(folder, rank, size)
    half = steps // 2
    wanted = torch.randn(FEATURES, 300, generator=torch.Generator().manual_seed(7))
    torch.manual_seed(rank)  # training must start from the parameters of rank 0
    model = torch.nn.Linear(FEATURES, 300)
    optimizer = torch.optim.SGD(model.parameters(), lr=15)  # large, since the loss is a mean over all outputs
    optimizer = gln.DistributedOptimizer(optimizer, model.named_parameters(), asynchronous=True, staleness=staleness)
    data = torch.Generator().manual_seed(100 + rank)
    mine = torch.zeros(size, dtype=torch.int32)
    mine[rank] = 1
    lead = 0
    for step in range(steps):
        time.sleep(0.005 if rank == 0 else 0.001)
        if rank == 0 and step == half:
            marks.wait_for_others(half + 1 + (11 if staleness is None else staleness))
            while not (folder / "go").exists():
                time.sleep(0.01)
        inputs = torch.randn(16, FEATURES, generator=data)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), inputs @ wanted).backward()
        optimizer.step()
        counts = gln.accumulate(mine, "steps", staleness)
        assert counts[rank] == step + 1, f"rank {rank} has {counts} at step {step}"
        lead = max(lead, step - int(counts.min()))
        marks.mark()
        if step == 3:
            print("training", flush=True)
    optimizer.synchronize()
    counts = gln.accumulate(torch.zeros(size, dtype=torch.int32), "steps", staleness)
    inputs = torch.randn(256, FEATURES, generator=torch.Generator().manual_seed(1))
    loss = torch.nn.functional.mse_loss(model(inputs), inputs @ wanted)
    digest = hashlib.sha256(b"".join(each.detach().numpy().tobytes() for each in model.parameters())).hexdigest()
    print(json.dumps({"loss": float(loss), "sha256": digest, "lead": lead, "counts": counts.tolist()}), flush=True)
    gln.shutdown()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else None)
