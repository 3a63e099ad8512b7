"""Runs one rank of a job that trains a trace, and writes its measurements as a line of JSON.

Under `gleaner run` it uses gleaner.torch or backend gleaner, otherwise torch.distributed with Gloo. It does not update
parameters: instead it checks the first and last element of every average, which takes almost no time.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional
from unittest import mock

import torch
import torch.distributed

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from training import traces
from training.network import TimedNetwork


@dataclass(frozen=True)
class Usage:
    """The processor time of this process, and the bytes that all interfaces of its host have sent (proc(5))."""

    processor_seconds: float
    sent_bytes: int

    @classmethod
    def now(cls) -> Usage:
        lines = Path("/proc/self/net/dev").read_text().splitlines()[2:]
        return cls(time.process_time(), sum(int(line.rpartition(":")[2].split()[8]) for line in lines))

    def __sub__(self, earlier: Usage) -> Usage:
        return Usage(self.processor_seconds - earlier.processor_seconds, self.sent_bytes - earlier.sent_bytes)


@dataclass
class Training:
    """A contender's training loop.

    `module` is the model. `after_backward` is called after the backward pass. `optimizer` sums gradients and checks the
    averages."""

    rank: int
    module: torch.nn.Module
    optimizer: torch.optim.Optimizer
    after_backward: Callable[[], None] = lambda: None

    def forward(self) -> torch.Tensor:
        return self.module(torch.zeros(1))

    def step(self) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        self.forward().backward()
        self.after_backward()
        self.optimizer.step()


class Checks(torch.optim.Optimizer):
    """Checks averages in place of updating parameters. In each step rank r contributes the value r + step."""

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


class SparseChecks(torch.optim.Optimizer):
    """Checks averages of sparse communication: gradients in chunks that are not sent are 0, and so are those within a
    tensor, at which a chunk may begin or end."""

    def __init__(self, network: TimedNetwork, rank: int, ranks: int) -> None:
        super().__init__(network.parameters(), {})
        self._network_gradients, self._change = network.gradients, (ranks - 1) / 2 - rank

    def step(self, closure: Optional[Callable[[], Any]] = None) -> None:
        wanted = self._network_gradients.value + self._change
        for parameter in (parameter for group in self.param_groups for parameter in group["params"]):
            found = parameter.grad[[0, -1]].tolist()
            if not all(each == 0 or math.isclose(each, wanted, rel_tol=1e-5) for each in found):
                raise RuntimeError(f"an average is {found[0]} ... {found[1]}, neither {wanted} nor 0")


@contextlib.contextmanager
def gleaner(network: TimedNetwork, arguments: argparse.Namespace) -> Iterator[Training]:
    import gleaner.torch as gln

    gln.init()
    prioritize = not arguments.contender.endswith("unordered")
    if arguments.contender.startswith("cross"):
        optimizer = gln.CrossBarrier(Checks(network, gln.size()), network, prioritize=prioritize)
    else:
        share = arguments.share
        sparsity = None if share is None else gln.Sparsity(share, warm_up_steps=0, momentum=0)
        optimizer = gln.DistributedOptimizer(
            SparseChecks(network, gln.rank(), gln.size()) if sparsity else Checks(network, gln.size()),
            network.named_parameters(),
            prioritize=prioritize,
            compression=getattr(gln.Compression, arguments.compression),
            fusion_bytes=arguments.fusion_bytes,
            sparsity=sparsity,
        )
    yield Training(gln.rank(), network, optimizer)
    gln.shutdown()


@contextlib.contextmanager
def gloo(network: TimedNetwork, arguments: argparse.Namespace) -> Iterator[Training]:
    """Trains with DistributedDataParallel, or with one all-reduce of all gradients after the backward pass."""
    rank, ranks = arguments.rank, arguments.ranks
    torch.distributed.init_process_group("gloo", init_method=f"file://{arguments.meeting}", rank=rank, world_size=ranks)

    def reduce_all() -> None:
        torch.distributed.all_reduce(network.gradients.memory)
        network.gradients.memory.div_(ranks)

    if arguments.contender == "after":
        yield Training(rank, network, Checks(network, ranks), reduce_all)
    else:
        yield Training(rank, in_ddp(network, arguments.bucket_mib), Checks(network, ranks))


@contextlib.contextmanager
def backend_gleaner(network: TimedNetwork, arguments: argparse.Namespace) -> Iterator[Training]:
    """Trains with DistributedDataParallel and backend gleaner."""
    import gleaner.torch.distributed

    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    where = f"file://{arguments.meeting}" if arguments.meeting else None
    torch.distributed.init_process_group(gleaner.torch.distributed.NAME, init_method=where, rank=rank, world_size=ranks)
    yield Training(rank, in_ddp(network, arguments.bucket_mib), Checks(network, ranks))
    torch.distributed.destroy_process_group()


def in_ddp(network: TimedNetwork, bucket_mib: float) -> torch.nn.Module:
    # The parameters have no values, so broadcasting them would only take time.
    with mock.patch("torch.nn.parallel.distributed._sync_module_states"):
        return torch.nn.parallel.DistributedDataParallel(
            network, bucket_cap_mb=bucket_mib, gradient_as_bucket_view=True, broadcast_buffers=False
        )


def contender(network: TimedNetwork, arguments: argparse.Namespace) -> contextlib.AbstractContextManager[Training]:
    if arguments.contender == "ddp-gleaner":
        return backend_gleaner(network, arguments)
    if arguments.contender.startswith(("cross", "barrier")):
        return gleaner(network, arguments)
    return gloo(network, arguments)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("contender", choices=["cross", "cross-unordered", "barrier", "ddp-gleaner", "ddp", "after"])
    parser.add_argument("--trace", type=Path, required=True)
    parser.add_argument("--slower", type=float, default=1.0, help="factor on all times of the trace (1)")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--warmup", type=int, default=1)
    parser.add_argument("--bucket-mib", type=float, default=25)
    parser.add_argument("--without-overlap", action="store_true", help="make all gradients at the end of backward")
    parser.add_argument("--compression", default="none", help="compression of barrier (none)")
    parser.add_argument("--fusion-bytes", type=int, help="threshold of packs of barrier (no packs)")
    parser.add_argument("--share", type=float, help="share of chunks that barrier does not send (dense)")
    parser.add_argument(
        "--meeting", type=Path, help="new file through which the ranks of torch.distributed find each other"
    )
    parser.add_argument("--rank", type=int)
    parser.add_argument("--ranks", type=int)
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    torch.set_num_threads(1)
    trace = traces.load(arguments.trace).slowed(arguments.slower)
    network = TimedNetwork(trace.without_overlap() if arguments.without_overlap else trace)
    with contender(network, arguments) as training:
        for step in range(arguments.warmup + arguments.steps):
            if step == arguments.warmup:
                before = Usage.now()
            network.gradients.value = float(training.rank + step)
            training.step()
        used = vars(Usage.now() - before)
        training.forward()  # a step lasts until the next one begins
        begins = network.processor.begins[arguments.warmup :]
        times = {"step_begins": begins[:-1], "step_ends": begins[1:]}
        print(json.dumps({"rank": training.rank, **times, **used}), flush=True)


if __name__ == "__main__":
    main()
