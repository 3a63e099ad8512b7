"""One worker of the chaos test: trains a small network on data made from a seed, and prints the result.

The training is deterministic, so all runs with the same numbers of workers and steps end with the same bits. Training
ends after --steps, or after the step in which a worker sees the file --stop."""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from pathlib import Path
from typing import Optional

import gleaner.torch as gleaner
import torch


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    end = parser.add_mutually_exclusive_group(required=True)
    end.add_argument("--steps", type=int)
    end.add_argument("--stop", type=Path, metavar="FILE")
    parser.add_argument("--width", type=int, default=512, help="size of the hidden layers")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def make_model(width: int) -> torch.nn.Module:
    layers: list[torch.nn.Module] = [torch.nn.Linear(64, width), torch.nn.Tanh()]
    for _ in range(3):
        layers += [torch.nn.Linear(width, width), torch.nn.Tanh()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(width, 10))


def digest(model: torch.nn.Module) -> str:
    bits = hashlib.sha256()
    for parameter in model.parameters():
        bits.update(parameter.detach().numpy().tobytes())
    return bits.hexdigest()


def is_over(step: int, steps: Optional[int], stop: Optional[Path]) -> bool:
    """Returns whether training ends after step `step`. The result is the same on all workers."""
    if stop is None:
        return step == steps
    seen = torch.tensor([1.0 if stop.exists() else 0.0])
    return bool(gleaner.push_pull(seen, name="stop", average=False)[0] > 0)


def main() -> None:
    arguments = parse_arguments()
    torch.set_num_threads(1)
    gleaner.init()
    torch.manual_seed(arguments.seed)
    model = make_model(arguments.width)
    optimizer = gleaner.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9), named_parameters=model.named_parameters()
    )
    gleaner.broadcast_parameters(model.state_dict(), root_rank=0)
    data = torch.Generator().manual_seed(1000 * arguments.seed + gleaner.rank())
    ends, over = [time.time()], False
    while not over:
        inputs = torch.randn(16, 64, generator=data)
        wanted = torch.randint(0, 10, (16,), generator=data)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), wanted).backward()
        optimizer.step()
        over = is_over(len(ends), arguments.steps, arguments.stop)
        ends.append(time.time())
        if len(ends) == 4:
            print("training", flush=True)
    result = {"rank": gleaner.rank(), "sha256": digest(model), "steps": len(ends) - 1, "ends": ends}
    gleaner.shutdown()
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
