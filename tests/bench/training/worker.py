"""One rank of a job that trains a trace; what it measured is a line of JSON.

Under `gleaner run` it uses gleaner.torch, otherwise torch.distributed's Gloo. Updates of parameters take no time for
anybody: in their place, the first and last element of every average are checked.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Optional
from unittest import mock

import torch
import torch.distributed

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from training import traces
from training.network import TimedNetwork

Contest = Iterator[tuple[int, Callable[[], None]]]  # yields the rank and what trains a step, then ends what it began


class Checks(torch.optim.Optimizer):
    """Stands in for updates: rank r contributed r + step."""

    def __init__(self, network: TimedNetwork, ranks: int) -> None:
        super().__init__(network.parameters(), {})
        self._ranks = ranks

    def step(self, closure: Optional[Callable[[], Any]] = None) -> None:
        for parameter in (parameter for group in self.param_groups for parameter in group["params"]):
            step = self.state[parameter]["step"] = self.state[parameter].get("step", -1) + 1
            wanted = step + (self._ranks - 1) / 2
            found = parameter.grad[[0, -1]].tolist()
            if not all(math.isclose(each, wanted, rel_tol=1e-5) for each in found):
                raise RuntimeError(f"in step {step} an average is {found[0]} ... {found[1]}, not {wanted}")


def gleaner(network: TimedNetwork, contender: str) -> Contest:
    import gleaner.torch as gln

    gln.init()
    prioritize = not contender.endswith("unordered")
    checks = Checks(network, gln.size())
    if contender.startswith("cross"):
        optimizer = gln.CrossBarrier(checks, network, prioritize=prioritize)
    else:
        optimizer = gln.DistributedOptimizer(checks, network.named_parameters(), prioritize=prioritize)
    yield gln.rank(), lambda: one_step(network, network, optimizer)
    optimizer.synchronize()
    gln.shutdown()


def one_step(called: torch.nn.Module, network: TimedNetwork, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad(set_to_none=True)
    called(torch.zeros(1)).backward()
    optimizer.step()
    network.gradients.value += 1


def ddp(network: TimedNetwork, bucket_mib: float) -> Contest:
    checks = Checks(network, torch.distributed.get_world_size())
    # Everybody's parameters are nothing; to send them around would only take time.
    with mock.patch("torch.nn.parallel.distributed._sync_module_states"):
        wrapped = torch.nn.parallel.DistributedDataParallel(
            network, bucket_cap_mb=bucket_mib, gradient_as_bucket_view=True, broadcast_buffers=False
        )
    yield torch.distributed.get_rank(), lambda: one_step(wrapped, network, checks)


def afterwards(network: TimedNetwork) -> Contest:
    """One all-reduce of everything when backward is through."""
    ranks = torch.distributed.get_world_size()
    checks = Checks(network, ranks)

    def train() -> None:
        checks.zero_grad(set_to_none=True)
        network(torch.zeros(1)).backward()
        torch.distributed.all_reduce(network.gradients.memory)
        network.gradients.memory.div_(ranks)
        checks.step()
        network.gradients.value += 1

    yield torch.distributed.get_rank(), train


def contend(network: TimedNetwork, arguments: argparse.Namespace) -> Contest:
    if arguments.contender.startswith(("cross", "barrier")):
        return gleaner(network, arguments.contender)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{arguments.meeting}", rank=arguments.rank, world_size=arguments.ranks
    )
    return ddp(network, arguments.bucket_mib) if arguments.contender == "ddp" else afterwards(network)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "contender", choices=["cross", "cross-unordered", "barrier", "barrier-unordered", "ddp", "after"]
    )
    parser.add_argument("--trace", type=Path, required=True)
    parser.add_argument("--slower", type=float, default=1.0, help="by how much, than the trace says")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--warmup", type=int, default=1)
    parser.add_argument("--bucket-mib", type=float, default=25)
    parser.add_argument("--meeting", type=Path, help="of Gloo: a file that is not there yet")
    parser.add_argument("--rank", type=int)
    parser.add_argument("--ranks", type=int)
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    torch.set_num_threads(1)
    network = TimedNetwork(traces.load(arguments.trace).slowed(arguments.slower))
    with contextlib.closing(contend(network, arguments)) as contest:
        rank, train = next(contest)
        network.gradients.value = float(rank)
        # A step lasts from one forward pass to the next one's begin, so one more is begun.
        for _ in range(arguments.warmup + arguments.steps + 1):
            train()
        begins = network.processor.begins[arguments.warmup :]
        print(json.dumps({"rank": rank, "step_begins": begins[:-1], "step_ends": begins[1:]}), flush=True)
        next(contest, None)


if __name__ == "__main__":
    main()
