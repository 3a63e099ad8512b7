"""Trains for some steps as users do: rank 0 evaluates alone, and all ranks average an accuracy at times."""

import argparse
import time

import gleaner.torch as gln
import torch

arguments = argparse.ArgumentParser()
arguments.add_argument("--steps", type=int, default=12)
arguments.add_argument("--evaluate-seconds", type=float, default=0, help="of rank 0 alone, in the middle")
arguments.add_argument("--average", type=int, default=0, help="elements that all ranks average after every fifth step")
arguments.add_argument("--cross-barrier", action="store_true")
given = arguments.parse_args()

gln.init()
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(5408, 6))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
if given.cross_barrier:
    optimizer = gln.CrossBarrier(optimizer, model)
else:
    optimizer = gln.DistributedOptimizer(optimizer, model.named_parameters())
gln.broadcast_parameters(model.state_dict(), root_rank=0)
gln.push_pull(torch.ones(77), name="number of samples")
for step in range(given.steps):
    optimizer.zero_grad()
    model(torch.rand(4, 1, 28, 28)).square().mean().backward()
    optimizer.step()
    if gln.rank() == 0 and step == given.steps // 2:
        time.sleep(given.evaluate_seconds)
    if given.average and step % 5 == 4:
        gln.push_pull(torch.ones(given.average), name="accuracy")
optimizer.synchronize()
gln.push_pull(torch.ones(12345), name="statistics")
print("gradients", 4 * sum(each.numel() for each in model.parameters()), "parameters", len(list(model.parameters())))
