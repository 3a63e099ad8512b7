"""A worker of an elastic job without PyTorch: counts steps and adds up ranks. With --fail-at one rank fails."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import gleaner
import numpy
from gleaner import elastic


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--changes", type=int, default=0, help="least number of changes of n before the end")
    parser.add_argument("--fail-at", type=int, help="step before which the last rank of round 1 fails")
    parser.add_argument("--once", type=Path, metavar="FILE", help="do not fail if FILE exists; create it")
    parser.add_argument(
        "--rejoin", choices=["alone", "ended"], default="alone", help="with --once: when the failed worker joins again"
    )
    return parser.parse_args()


def changes(worlds: list[int]) -> int:
    return sum(one != other for one, other in zip(worlds, worlds[1:]))


class Moments:
    """Tells the failed worker by files when another worker makes steps alone, and when it has ended."""

    def __init__(self, once: Path | None) -> None:
        self._once = once

    def _file(self, moment: str) -> Path:
        return self._once.with_name(f"{self._once.name}-{moment}")

    def tell(self, moment: str) -> None:
        if self._once is not None:
            self._file(moment).touch()

    def wait_for(self, moment: str) -> None:
        while not self._file(moment).exists():
            time.sleep(0.02)


def main() -> None:
    arguments = parse_arguments()
    moments = Moments(arguments.once)
    failed_before = arguments.once is not None and arguments.once.exists()
    if failed_before:
        moments.wait_for(arguments.rejoin)
    gleaner.init()
    state = elastic.ObjectState(step=0, total=0.0, worlds=[])
    resets: list[int] = []
    state.register_reset_callbacks([lambda: resets.append(gleaner.size())])

    @elastic.run
    def count(state: elastic.ObjectState) -> None:
        # `worlds` is the same on all ranks, so all ranks end after the same step.
        while state.step < arguments.steps or changes(state.worlds) < arguments.changes:
            last = gleaner.rank() == gleaner.size() - 1
            if state.step == arguments.fail_at and last and not resets and not failed_before:
                if arguments.once is not None:
                    arguments.once.touch()
                raise RuntimeError("on purpose")
            ones = gleaner.push_pull(numpy.ones(1000, numpy.float32), name="ones", average=False)
            state.total += float(ones[0])
            state.worlds.append(gleaner.size())
            state.step += 1
            state.commit()
            if gleaner.size() == 1:
                moments.tell("alone")
            print(f"step {state.step} of {gleaner.size()} as {gleaner.rank()}", flush=True)
            time.sleep(0.02)

    count(state)
    assert state.total == sum(state.worlds), "every sum has the contributions of all workers of one round"
    print(f"ended with {state.worlds}", flush=True)
    gleaner.shutdown()
    moments.tell("ended")


if __name__ == "__main__":
    main()
