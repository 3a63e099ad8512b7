"""A worker of an elastic job that runs the program of docs/large-batches.md. One worker fails at a step."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import gleaner.torch as gln
import torch
from torch import nn

FAILS_AT, steps, warm_up, base_lr = 12, 24, 6, 0.8


def train_step(state: Any) -> None:
    if state.step == FAILS_AT and gln.size() == 3 and gln.rank() == 2:
        os._exit(1)
    seen[state.step] = gln.size(), state.rate, optimizer.param_groups[0]["lr"]
    optimizer.zero_grad()
    model(torch.ones(1, 4)).square().mean().backward()
    optimizer.step()


gln.init()
seen: dict[int, tuple[int, float, float]] = {}  # by step; the step of the loss is made again
model = nn.Linear(4, 4)
optimizer = gln.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1.0), model.named_parameters())
exec(Path(sys.argv[1]).read_text())
train(state)  # noqa: F821  # the program in the document defines both
print("ended " + json.dumps([(step, *rest) for step, rest in seen.items()]), flush=True)
gln.shutdown()
