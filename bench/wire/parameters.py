"""A worker that averages the gradients of a list of parameters with DistributedOptimizer.

    parameters.py LIST FUSION_BYTES STEPS

LIST: a file as in examples/models, with the gradients in the order of backward(). FUSION_BYTES: a number, inf, auto or
None. Writes the times of backward() in its steps (step_times.py), which end when all averages are in place. Other work
is not in these times, and backward() itself only multiplies each gradient by a constant."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import gleaner.torch as gln
import torch
from step_times import WARMUP, StepTimes

TUNING = 3  # steps at whose end "auto" chooses packs


def loss_of(parameters: list[torch.nn.Parameter], gradients: list[torch.Tensor]) -> torch.Tensor:
    """Returns a loss whose backward() makes the gradients one after another, from the last to the first."""
    loss = torch.zeros(())
    for parameter, gradient in zip(parameters, gradients):
        loss = loss + (parameter * gradient).sum()
    return loss


def main() -> None:
    listed = json.loads(Path(sys.argv[1]).read_text())
    named = {"None": None, "auto": "auto"}
    fusion_bytes = named[sys.argv[2]] if sys.argv[2] in named else float(sys.argv[2])
    gln.init()
    torch.set_num_threads(1)
    gradients = [torch.full((each["bytes"] // 4,), gln.rank() + 0.5) for each in reversed(listed)]
    parameters = [torch.nn.Parameter(torch.zeros_like(each)) for each in gradients]
    names = [each["name"] for each in reversed(listed)]
    optimizer = gln.DistributedOptimizer(
        torch.optim.SGD(parameters, lr=0), zip(names, parameters), fusion_bytes=fusion_bytes
    )
    times = StepTimes(TUNING + WARMUP)
    for _ in range(TUNING + WARMUP + int(sys.argv[3])):
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(parameters, gradients)
        gln.push_pull(torch.zeros(1), name="all are ready")
        with times.step():
            loss.backward()
        optimizer.step()
    if any((each.grad != gln.size() / 2).any() for each in parameters):
        raise RuntimeError(f"an average is not {gln.size() / 2}")
    rank = gln.rank()
    gln.shutdown()
    times.write(rank)


if __name__ == "__main__":
    main()
