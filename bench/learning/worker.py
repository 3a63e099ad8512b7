"""Trains one model in one mode for several seeds, as one rank of a job. Rank 0 tells the curves.

Everything follows from the seed: the first parameters, which all ranks make alike, and the order of the examples. So a
run can be repeated bit for bit on the same machine with the same number of ranks.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gleaner.torch as gln
import numpy
import torch
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from learning.data import Examples, Pair
from learning.tasks import MODES, TASKS, Task

WARM_UP = 0.1  # of all steps; a cosine follows


def batches(examples: Examples, seed: int, epoch: int, batch: int) -> Iterator[Pair]:
    """Yields this rank's shares of the batches of an epoch. Drops the last batch if it is smaller than the others."""
    inputs, targets = examples.train
    order = torch.from_numpy(numpy.random.default_rng([seed, epoch]).permutation(len(inputs)))
    for start in range(0, len(order) - batch + 1, batch):
        chosen = order[start : start + batch][gln.rank() :: gln.size()]
        yield inputs[chosen], targets[chosen]


def loss_of(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return functional.cross_entropy(logits.flatten(0, -2), targets.flatten())


def test(model: torch.nn.Module, examples: Examples) -> dict[str, float]:
    """Returns the loss and the accuracy on the test data, with this rank's statistics of batch norm."""
    inputs, targets = examples.test
    model.eval()
    with torch.no_grad():
        logits = torch.cat([model(each) for each in inputs.split(100)])
    model.train()
    right = (logits.argmax(-1) == targets).float().mean()
    return {"test_loss": loss_of(logits, targets).item(), "test_accuracy": right.item()}


def curve(
    task: Task, options_of: Callable[[int], dict[str, Any]], examples: Examples, seed: int, epochs: int
) -> Iterator[dict[str, Any]]:
    """Trains a model. Yields a point after each epoch: losses in nats, the accuracy from 0 to 1, and seconds so far.

    Only rank 0 tests, so the test fields of other ranks are missing.
    """
    torch.manual_seed(seed)
    model = task.model(examples.classes)
    steps = epochs * (len(examples.train[0]) // task.batch)
    options = options_of(steps)
    optimizer = gln.DistributedOptimizer(task.optimizer(model.parameters()), model.named_parameters(), **options)
    warm_up = max(1, round(WARM_UP * steps))
    after = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(1, steps - warm_up))
    scheduler = gln.WarmUp(optimizer, warm_up, after)
    begin = time.monotonic()
    for epoch in range(epochs):
        losses = []
        for inputs, targets in batches(examples, seed, epoch, task.batch):
            optimizer.zero_grad()
            loss = loss_of(model(inputs), targets)
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses.append(loss.detach())
        mean = gln.push_pull(torch.stack(losses).mean(), name="mean loss").item()
        tested = test(model, examples) if gln.rank() == 0 else {}
        yield {"epoch": epoch + 1, "train_loss": mean, **tested, "seconds": time.monotonic() - begin}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=TASKS, required=True)
    parser.add_argument("--mode", choices=MODES, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", required=True)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True, help="file to which rank 0 adds a line of JSON per seed")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    gln.init()
    task, options_of = TASKS[arguments.model], MODES[arguments.mode]
    examples = task.examples()
    for seed in arguments.seeds:
        points = []
        for point in curve(task, options_of, examples, seed, arguments.epochs):
            points.append(point)
            if gln.rank() == 0:
                told = "  ".join(f"{name} {value:.4g}" for name, value in point.items())
                print(f"{arguments.model}  {arguments.mode}  seed {seed}  {told}", flush=True)
        if gln.rank() == 0:
            with arguments.out.open("a") as file:
                file.write(json.dumps({"seed": seed, "data": examples.digest, "curve": points}) + "\n")
    gln.shutdown()


if __name__ == "__main__":
    main()
