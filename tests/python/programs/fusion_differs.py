"""Ranks fuse gradients differently: fusion_differs.py WRAP WAY. Each rank prints the error that it gets.

WRAP is DistributedOptimizer or CrossBarrier. Rank 1 passes another `fusion_bytes` than rank 0 (WAY is `bytes`), where
rank 0 may pass "auto" (`auto`). Or it freezes another parameter before wrapping (`frozen`), joins at once (`joins`),
has no `sparsity` (`dense`), or other chunks (`chunks`).
"""

from __future__ import annotations

import sys

import gleaner.torch as gln
import torch
from checking import raises
from gleaner import FailedPreconditionError
from small_training import momentum, net, take_step

if __name__ == "__main__":
    torch.set_num_threads(1)
    gln.init()
    wrap, way = sys.argv[1:]
    model = net()
    fusion_bytes = "auto" if way == "auto" else 1000
    if gln.rank() == 1:
        if way == "frozen":
            model.sometimes.weight.requires_grad_(False)
        else:
            fusion_bytes = None
    if wrap == "CrossBarrier":
        optimizer = gln.CrossBarrier(momentum(model), model, fusion_bytes=fusion_bytes)
    elif way in ("dense", "chunks"):
        sparsity = gln.Sparsity(0.7, warm_up_steps=0, chunk_elements=100)
        if gln.rank() == 1:
            sparsity = None if way == "dense" else gln.Sparsity(0.7, warm_up_steps=0, chunk_elements=50)
        optimizer = gln.DistributedOptimizer(momentum(model), model.named_parameters(), sparsity=sparsity)
    else:
        optimizer = gln.DistributedOptimizer(momentum(model), model.named_parameters(), fusion_bytes=fusion_bytes)

    def train() -> None:
        if gln.rank() == 1 and way == "joins":
            gln.join()
        take_step(model, optimizer, 0, detour=True)
        optimizer.synchronize()

    print(f"rank {gln.rank()}: {raises(FailedPreconditionError, train)}", flush=True)
    gln.push_pull(torch.ones(1), name="all have printed")
    gln.shutdown(failed=True)
