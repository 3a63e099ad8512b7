#!/usr/bin/env python3
"""Trains like train.py, but as an elastic job: workers may be killed and may join while it trains.

    gleaner run --workers 4 --min-workers 2 --restarts 3 -- python3 examples/digits/train_elastic.py

Try `kill -9` on any worker: the other workers continue from the last commit, and the restarted worker joins at the next
commit. Each rank takes its share of every batch, for any number of ranks.
"""

from __future__ import annotations

import argparse
import time

import gleaner.torch as gln
import torch
from torch.nn import functional
from train import SEED, Digits, make, sha256, shard, tell_epoch


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=128, help="examples per step, over all ranks")
    parser.add_argument("--rate", type=float, default=0.004, help="learning rate")
    parser.add_argument("--commit-every", type=int, default=5, help="steps between commits")
    parser.add_argument("--pause", type=float, default=0, help="seconds to wait after each step, to slow the job down")
    return parser.parse_args()


def main(arguments: argparse.Namespace) -> None:
    gln.init()
    digits = Digits()
    model, optimizer = make(SEED, arguments.rate)
    optimizer = gln.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    state = gln.elastic.TorchState(model=model, optimizer=optimizer, epoch=0, step=0, losses=[])

    @gln.elastic.run
    def train(state: gln.elastic.TorchState) -> None:
        print(f"rank {gln.rank()} of {gln.size()} from epoch {state.epoch + 1}, step {state.step}", flush=True)
        while state.epoch < arguments.epochs:
            for batch in list(digits.batches(state.epoch, arguments.batch))[state.step :]:
                images, labels = shard(batch, gln.rank(), gln.size())
                optimizer.zero_grad()
                loss = functional.cross_entropy(model(images), labels)
                loss.backward()
                optimizer.step()
                state.losses.append(loss.item())
                state.step += 1
                if state.step % arguments.commit_every == 0:
                    state.commit()
                time.sleep(arguments.pause)
            mean = gln.push_pull(torch.tensor(state.losses).mean(), name="loss").item()
            if gln.rank() == 0:
                tell_epoch(state.epoch, arguments.epochs, mean, model, digits)
            state.epoch, state.step, state.losses = state.epoch + 1, 0, []
            state.commit()

    train(state)
    if gln.rank() == 0:
        print(f"parameters' SHA-256 {sha256(model)}", flush=True)
    gln.shutdown()


if __name__ == "__main__":
    torch.set_num_threads(1)  # several workers share the machine's cores, and a single thread adds in a fixed order
    torch.use_deterministic_algorithms(True)
    main(parse_arguments())
