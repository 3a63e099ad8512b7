"""Trains for two steps; then the last rank kills itself, and hooks of the others raise in their next backward pass.

failed_backward.py caught|uncaught: whether the program catches the error and saves the model, or ends by it.
"""

from __future__ import annotations

import os
import signal
import sys
import time

import gleaner
import gleaner.torch as gln
import torch


def main() -> None:
    gln.init()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(20, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
    optimizer = gln.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
    for step in range(3):
        if step == 2:
            if gln.rank() == gln.size() - 1:
                os.kill(os.getpid(), signal.SIGKILL)
            wait_for_the_end_of_the_session()
        optimizer.zero_grad()
        try:
            model(torch.ones(8, 20)).square().mean().backward()
        except gleaner.UnavailableError:
            if sys.argv[1] == "uncaught":
                raise
            torch.save(model.state_dict(), os.devnull)
            print("saved", flush=True)
            return
        optimizer.step()


def wait_for_the_end_of_the_session() -> None:
    try:
        while True:
            gleaner.poll(gln.push_pull_async(torch.ones(1), name=f"poll.{time.monotonic()}"))
            time.sleep(0.1)
    except gleaner.UnavailableError:
        pass


main()
