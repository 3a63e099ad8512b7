#!/usr/bin/python3
"""Runs PyTorch's own tests of torch.distributed with backends gloo and gleaner, and compares the outcomes.

    export PYTHONPATH=comm-lib/python GLEANER_LIBRARY=build/release/lib/libgleaner.so
    build/current-torch/bin/python tests/outside/torch_suite.py

The tests are those of torch.testing._internal.distributed.distributed_test, which the wheel of PyTorch has; they need
the package expecttest. Each rank is a fork of this process, which imports PyTorch once. The last line is a row of the
table in docs/compatibility.md. Exits with 1 if a test fails with gleaner that passes with gloo.
"""

from __future__ import annotations

import argparse
import collections
import multiprocessing
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

FORK = multiprocessing.get_context("fork")


class LikeGloo(str):
    """The name of a backend for which the tests' conditions, such as skips, are as for gloo."""

    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other) or other == "gloo"

    def __ne__(self, other: object) -> bool:
        return not self == other


class Suite:
    """PyTorch's tests, for a number of ranks. `folder`: for the files by which the ranks meet."""

    def __init__(self, ranks: int, seconds: float, folder: Path) -> None:
        (folder / "barrier").mkdir()
        # The module of the tests reads these variables when it is imported.
        os.environ.update(
            BACKEND="gloo", WORLD_SIZE=str(ranks), TEMP_DIR=str(folder), INIT_METHOD=f"file://{folder}/init"
        )
        os.environ.update(OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo")
        import gleaner.torch.distributed
        import torch
        from torch.testing._internal import common_distributed
        from torch.testing._internal.distributed import distributed_test

        torch.set_num_threads(1)
        self._module, self._ranks, self._seconds, self._folder = distributed_test, ranks, seconds, folder
        self._skips = {skip.exit_code: skip.message for skip in common_distributed.TEST_SKIPS.values()}
        for backends in distributed_test.DistTestCases.backend_feature.values():
            if "gloo" in backends:
                backends.add(gleaner.torch.distributed.NAME)
        bases = (distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase)
        self._case: Any = type("Case", bases, {"__module__": "__main__"})

    def tests(self) -> list[str]:
        return sorted(name for name in dir(self._case) if name.startswith("test_"))

    def run(self, test: str, backend: str) -> tuple[str, str]:
        """Returns the outcome of a test (passed, failed or skipped), and the reason."""
        method = getattr(self._case, test)
        if getattr(method, "__unittest_skip__", False):
            return "skipped", method.__unittest_skip_why__
        self._module.BACKEND = LikeGloo(backend)
        self._module.initialize_temp_directories()
        self._module.Barrier.init()
        log = self._folder / "log"
        ranks = [FORK.Process(target=self._run_rank, args=(test, rank, log)) for rank in range(self._ranks)]
        for rank in ranks:
            rank.start()
        until = time.monotonic() + self._seconds
        for rank in ranks:
            rank.join(max(0.0, until - time.monotonic()))
        late = [number for number, rank in enumerate(ranks) if rank.is_alive()]
        for number in late:
            os.killpg(ranks[number].pid, signal.SIGKILL)
            ranks[number].join()
        text = log.read_text() if log.exists() else ""
        for path in self._folder.glob("*"):
            path.unlink() if path.is_file() else None
        self._module.cleanup_temp_dir()
        if late:
            return "failed", f"ranks {late} did not end within {self._seconds:g} s"
        return self._outcome([rank.exitcode for rank in ranks], text)

    def _run_rank(self, test: str, rank: int, log: Path) -> None:
        os.setsid()
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(file, 1), os.dup2(file, 2)
        status = 1
        try:
            ours, _ = FORK.Pipe()
            self._case._run(rank, test, str(self._folder / "meeting"), ours)
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(status)

    def _outcome(self, statuses: list[int], log: str) -> tuple[str, str]:
        if not any(statuses):
            return "passed", ""
        if all(status in self._skips for status in statuses):
            return "skipped", self._skips[statuses[0]]
        errors = re.findall(r"^(?:\w+\.)*\w*(?:Error|Exception)\b.*", log, re.MULTILINE)
        return "failed", errors[0][:200] if errors else f"exit statuses {statuses}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--only", default="", help="regular expression of the tests' names")
    parser.add_argument("--seconds", type=float, default=120, help="until a test counts as failed")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="torch-suite-"))
    counts: dict[str, collections.Counter[str]] = {"gloo": collections.Counter(), "gleaner": collections.Counter()}
    worse = 0
    try:
        suite = Suite(arguments.ranks, arguments.seconds, folder)
        for test in filter(re.compile(arguments.only).search, suite.tests()):
            outcomes = {backend: suite.run(test, backend) for backend in counts}
            for backend, (outcome, reason) in outcomes.items():
                counts[backend][outcome] += 1
                if outcome == "failed":
                    print(f"{test}: {backend}: {reason}", flush=True)
            worse += outcomes["gloo"][0] == "passed" and outcomes["gleaner"][0] != "passed"
    finally:
        shutil.rmtree(folder)
    cells = [f"{counts[name][outcome]}" for name in counts for outcome in ("passed", "failed", "skipped")]
    print(f"| {arguments.ranks} | {f'`{arguments.only}`' if arguments.only else 'all'} | {' | '.join(cells)} |")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
