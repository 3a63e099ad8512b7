"""A worker of an elastic job: trains a small network on data that depends only on step, rank and number of ranks.

`--reference WORLDS` trains without Gleaner, in one process: WORLDS lists the number of ranks in each step, and the
process adds the ranks' gradients in rank order. Both modes print the SHA-256 of the final parameters."""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from typing import Any

import torch
from torch import nn
from torch.nn import functional


def make() -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 10))
    return model, torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def loss(model: nn.Module, step: int, rank: int, ranks: int) -> torch.Tensor:
    data = torch.Generator().manual_seed((step * 1000 + ranks) * 1000 + rank)
    inputs = torch.randn(8, 32, generator=data)
    return functional.cross_entropy(model(inputs), torch.randint(0, 10, (8,), generator=data))


def tell(model: nn.Module, **more: object) -> None:
    bits = hashlib.sha256(b"".join(each.detach().numpy().tobytes() for each in model.parameters()))
    print("ended " + json.dumps({"sha256": bits.hexdigest(), **more}), flush=True)


def reference(worlds: list[int]) -> None:
    model, optimizer = make()
    for step, ranks in enumerate(worlds):
        sums: list[torch.Tensor] = []
        for rank in range(ranks):
            gradients = torch.autograd.grad(loss(model, step, rank, ranks), list(model.parameters()))
            sums = [a + b for a, b in zip(sums, gradients)] if sums else list(gradients)
        for parameter, total in zip(model.parameters(), sums):
            parameter.grad = total / ranks
        optimizer.step()
    tell(model)


def changes(worlds: list[int]) -> int:
    return sum(one != other for one, other in zip(worlds, worlds[1:]))


def work(arguments: argparse.Namespace) -> None:
    import gleaner.torch as gln

    gln.init()
    model, optimizer = make()
    with torch.no_grad():  # sync() must replace these parameters
        for parameter in model.parameters():
            parameter.add_(gln.rank())
    more: dict[str, Any] = {"fusion_bytes": arguments.fusion_bytes}
    if arguments.sparse:  # all chunks are sent, so the reference has the same bits
        more["sparsity"] = gln.Sparsity(0, warm_up_steps=0, chunk_elements=100)
    wrap = gln.CrossBarrier(optimizer, model, **more) if arguments.cross_barrier else None
    optimizer = wrap or gln.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(), **more)
    resets: list[int] = []
    state = gln.elastic.TorchState(model=model, optimizer=optimizer, step=0, worlds=[])
    state.register_reset_callbacks([lambda: resets.append(gln.size())])

    @gln.elastic.run
    def train(state: gln.elastic.TorchState) -> None:
        # `worlds` is the same on all ranks, so all ranks end after the same step.
        while state.step < arguments.steps or changes(state.worlds) < arguments.changes:
            optimizer.zero_grad()
            loss(model, state.step, gln.rank(), gln.size()).backward()
            optimizer.step()
            state.worlds.append(gln.size())
            state.step += 1
            if state.step % arguments.commit_every == 0:
                state.commit()
            print(f"step {state.step} of {gln.size()} as {gln.rank()}", flush=True)
            time.sleep(arguments.pause)

    train(state)
    if wrap is not None:
        wrap.synchronize()
    tell(model, worlds=state.worlds, resets=resets, rank=gln.rank())
    gln.shutdown()


if __name__ == "__main__":
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--changes", type=int, default=0, help="least number of changes of n before the end")
    parser.add_argument("--commit-every", type=int, default=1)
    parser.add_argument("--pause", type=float, default=0.03, help="seconds after each step")
    parser.add_argument("--cross-barrier", action="store_true")
    parser.add_argument("--fusion-bytes", type=lambda text: text if text == "auto" else float(text))
    parser.add_argument("--sparse", action="store_true")
    parser.add_argument("--reference", type=json.loads, metavar="WORLDS")
    chosen = parser.parse_args()
    if chosen.reference is not None:
        reference(chosen.reference)
    else:
        work(chosen)
