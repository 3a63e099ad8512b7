"""Runs one rank of a job under `gleaner run`, and writes the times of its calls as a line of JSON.

The default group has backend gleaner; Gloo has a group of the same ranks. For each case both make calls in turn: in
each round some calls of one, then as many of the other, and the other way round in the next round. All ranks wait for
each other before each call, by a barrier of Gloo.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional

import torch
import torch.distributed as dist
from gleaner.torch.distributed import NAME

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from distributed import layer
from distributed.cases import CASES, REPLICAS, SHARDS, Case

MOST_ROUNDS, MOST_CALLS = 9, 60
# Calls of a large all_reduce take one of 32 names in turn, and a name's first call makes a plan.
WARM_CALLS = 33
# The part of a case's time that may pass before the rounds.
WARM_SHARE = 0.3


class Calls:
    """Makes calls of both backends.

    Args:
        everyone: Group of all ranks, with backend Gloo.
        seconds: About how long a case may take.
    """

    def __init__(self, everyone: Any, seconds: float) -> None:
        self._everyone = everyone
        self._seconds = seconds

    def measure(self, case: Case, groups: dict[str, Any]) -> dict[str, Any]:
        """Returns for each backend the rounds of a case; without Gloo's if it refuses the collective.

        `groups`: by backend, a group with this rank.
        """
        slowest, missing = 0.0, None
        backends = []
        for name, group in groups.items():
            try:
                slowest = max(slowest, self._warm(case, group, self._seconds / len(groups)))
                backends.append(name)
            except (RuntimeError, NotImplementedError) as error:
                if name != "gloo":
                    raise
                missing = str(error).splitlines()[0]
        every = len(backends) * slowest
        rounds = max(2, min(MOST_ROUNDS, int(self._seconds / every)))
        calls = max(1, min(MOST_CALLS, int(self._seconds / every / rounds)))
        found: dict[str, Any] = {name: [] for name in backends}
        for number in range(rounds):
            for name in backends if number % 2 == 0 else reversed(backends):
                found[name].append(self._round(case, groups[name], calls))
        return {"rounds": found, "missing": missing}

    def _warm(self, case: Case, group: Any, seconds: float) -> float:
        """Makes calls that do not count. Returns the seconds of the last one, which are the same on all ranks.

        `seconds`: about how long this backend may take.
        """
        began = time.monotonic()
        for _ in range(WARM_CALLS):
            times = self._round(case, group, 1)
            taken = torch.tensor([times["step_ends"][0] - times["step_begins"][0], time.monotonic() - began])
            dist.all_reduce(taken, dist.ReduceOp.MAX, group=self._everyone)
            if taken[1] > WARM_SHARE * seconds:
                break
        return max(float(taken[0]), 1e-6)

    def _round(self, case: Case, group: Any, calls: int) -> dict[str, list[float]]:
        begins, ends, used = [], [], []
        for _ in range(calls):
            case.prepare()
            dist.barrier(group=self._everyone)
            before = time.process_time()
            begins.append(time.monotonic())
            case.call(group)
            ends.append(time.monotonic())
            used.append(time.process_time() - before)
            case.check()
        return {"step_begins": begins, "step_ends": ends, "processor": used}


def join(meeting: Optional[Path]) -> dict[str, Any]:
    """Joins the job. Returns the groups of all ranks by backend."""
    where = None if meeting is None else f"file://{meeting}"
    dist.init_process_group(
        NAME, init_method=where, rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"])
    )
    return {"gloo": dist.new_group(backend="gloo"), "gleaner": dist.group.WORLD}


def of_replicas(groups: dict[str, Any]) -> dict[str, Any]:
    """Returns by backend the group of the ranks that have replicas of this rank's shard."""
    found = {}
    for name in groups:
        for shard in range(SHARDS):
            group = dist.new_group(list(range(shard, dist.get_world_size(), SHARDS)), backend=name)
            if dist.get_rank() % SHARDS == shard:
                found[name] = group
    return found


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", default="", help="collectives and bytes, as all_reduce:4,all_gather:65536")
    parser.add_argument("--seconds", type=float, default=4.0, help="about how long a case may take (4)")
    parser.add_argument(
        "--layer-calls", type=int, default=0, help="calls that measure the Python layer, with one rank (0)"
    )
    parser.add_argument("--meeting", type=Path, help="new file through which ranks find each other")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    torch.set_num_threads(1)
    groups = join(arguments.meeting)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    calls, cases = Calls(groups["gloo"], arguments.seconds), []
    replicas = of_replicas(groups) if REPLICAS in arguments.cases else {}
    for text in arguments.cases.split(",") if arguments.cases else []:
        collective, _, size = text.partition(":")
        make: Callable[[int, int, int], Case] = CASES[collective]
        measured = calls.measure(make(int(size), rank, ranks), replicas if collective == REPLICAS else groups)
        cases.append({"collective": collective, "bytes": int(size), **measured})
    layers = layer.measure(arguments.layer_calls) if arguments.layer_calls else {}
    print(json.dumps({"rank": rank, "torch": torch.__version__, "cases": cases, "layers": layers}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
