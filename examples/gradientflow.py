#!/usr/bin/env python3
"""Trains a small network on generated data with the options of GradientFlow (docs/gradientflow.md).

    gleaner run --workers 2 -- python3 examples/gradientflow.py --fusion-bytes 1048576 --compression fp16
    gleaner run --workers 2 -- python3 examples/gradientflow.py --sparsity 0.85

The lines of the epochs compare the options: each has the loss, the bytes that a step sent, and the seconds. The network
learns the classes that another network with random parameters gives to random points. Flags that are left out leave
the choice to the job (GLEANER_COMPRESSION, GLEANER_FUSION_BYTES).
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import gleaner.torch as gln
import torch
from torch import nn
from torch.nn import functional

SEED = 7
STEPS = 40  # of an epoch
BATCH = 64  # points of a rank in a step
FEATURES, WIDTH, CLASSES = 64, 512, 10
STATS_AGE = 0.3  # seconds; stats() may be up to 250 ms old


def network(seed: int) -> nn.Sequential:
    """Returns a network of about 830,000 parameters: 26 chunks of sparse communication."""
    torch.manual_seed(seed)
    layers: list[nn.Module] = [nn.Linear(FEATURES, WIDTH), nn.ReLU()]
    for _ in range(3):
        layers += [nn.Linear(WIDTH, WIDTH), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(WIDTH, CLASSES))


def options_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns the arguments of DistributedOptimizer that the flags give."""
    options: dict[str, Any] = {}
    if arguments.fusion_bytes is not None:
        options["fusion_bytes"] = arguments.fusion_bytes
    if arguments.compression is not None:
        options["compression"] = getattr(gln.Compression, arguments.compression)
    if arguments.sparsity is not None:
        options["sparsity"] = gln.Sparsity(arguments.sparsity, warm_up_steps=STEPS)
    return options


def bytes_so_far() -> int:
    """Returns the bytes of all sums that have ended on this rank."""
    time.sleep(STATS_AGE)
    return gln.stats().bytes


def train_epoch(model: nn.Module, teacher: nn.Module, optimizer: torch.optim.Optimizer) -> float:
    """Returns the mean loss of the epoch on this rank."""
    total = 0.0
    for _ in range(STEPS):
        points = torch.randn(BATCH, FEATURES)
        with torch.no_grad():
            classes = teacher(points).argmax(1)
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(points), classes)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / STEPS


def train(arguments: argparse.Namespace) -> None:
    gln.init()
    teacher, model = network(SEED), network(SEED + 1)
    gln.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    optimizer = gln.DistributedOptimizer(optimizer, model.named_parameters(), **options_of(arguments))
    torch.manual_seed(SEED + gln.rank())  # each rank has points of its own
    for epoch in range(arguments.epochs):
        before, start = bytes_so_far(), time.monotonic()
        loss = train_epoch(model, teacher, optimizer)
        seconds = time.monotonic() - start
        sent = (bytes_so_far() - before) / STEPS
        mean = gln.push_pull(torch.tensor(loss), name="loss").item()
        if gln.rank() == 0:
            line = f"epoch {epoch + 1}/{arguments.epochs}  loss {mean:.4f}  {sent:,.0f} B a step  {seconds:.2f} s"
            print(line, flush=True)
    gln.shutdown()


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=5, help=f"of {STEPS} steps each")
    parser.add_argument(
        "--fusion-bytes", type=float, metavar="N", help="send small gradients in packs; inf: all together"
    )
    parser.add_argument("--compression", choices=("none", "fp16", "bf16"), help="type in which gradients travel")
    parser.add_argument("--sparsity", type=float, metavar="SHARE", help="share of the gradients that a step leaves out")
    return parser.parse_args()


if __name__ == "__main__":
    torch.set_num_threads(1)  # several workers share the machine's cores
    train(parse_arguments())
