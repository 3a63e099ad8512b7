#!/usr/bin/python3
"""Runs Horovod's own tests of horovod.torch with gleaner.horovod.torch in its place, and prints a table of the results.

    tests/outside/horovod_suite.py CHECKOUT [--workers 2] [--python PYTHON] [--only EXPRESSION] [--out FILE]

CHECKOUT is a checkout of Horovod, of which only test/ is used. PYTHON has torch, numpy, pytest, mock, cloudpickle and
packaging. The tests of one job run one after the other in the same processes. After a failure, or after a minute
without progress, another job goes on with the next test, since ranks may then be at different tests.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
import types
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GLEANER_BUILD", ROOT / "build" / "release")).resolve()
STALL_SECONDS = 60.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--summers", type=int, default=0)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--only", default="", help="expression for pytest's -k")
    parser.add_argument("--out", type=Path, help="file for the table; default: standard output")
    options = parser.parse_args()
    results = Suite(options).run()
    table = "".join(f"{name}\t{outcome}\t{reason}\n" for name, (outcome, reason) in results.items())
    if options.out is None:
        print(table, end="")
    else:
        options.out.write_text(table)
    outcomes = [outcome for outcome, _ in results.values()]
    print(", ".join(f"{outcomes.count(each)} {each}" for each in sorted(set(outcomes))), file=sys.stderr)


class Suite:
    """The tests that have no result yet, and the jobs that run them."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._results: dict[str, tuple[str, str]] = {}

    def run(self) -> dict[str, tuple[str, str]]:
        with tempfile.TemporaryDirectory() as folder:
            tests = self._collect(Path(folder))
            while left := [test for test in tests if test not in self._results]:
                for each in Path(folder).iterdir():
                    each.unlink()
                (Path(folder) / "tests").write_text("\n".join(left))
                self._job(Path(folder))
                self._take_results(Path(folder), left)
        return {test: self._results[test] for test in tests}

    def _collect(self, folder: Path) -> list[str]:
        only = ["-k", self._options.only] if self._options.only else []
        command = [self._options.python, __file__, "--as-rank", str(self._options.checkout), str(folder), "--collect"]
        subprocess.run([*command, *only], env=self._environment(), check=True)
        return (folder / "collected").read_text().split()

    def _environment(self) -> dict[str, str]:
        paths = [str(ROOT / "comm-lib" / "python"), os.environ.get("PYTHONPATH", "")]
        return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "OMP_NUM_THREADS": "1"}

    def _job(self, folder: Path) -> None:
        options = self._options
        command = [str(BUILD / "bin" / "gleaner"), "run", "--workers", str(options.workers)]
        command += ["--summers", str(options.summers), "--"]
        command += [options.python, __file__, "--as-rank", str(options.checkout), str(folder)]
        with (folder / "output").open("w") as output:
            job = subprocess.Popen(command, env=self._environment(), stdout=output, stderr=output)
            changed, seen = time.monotonic(), -1
            while job.poll() is None and time.monotonic() < changed + STALL_SECONDS:
                time.sleep(0.2)
                now = sum(each.stat().st_size for each in folder.glob("rank.*"))
                if now != seen:
                    changed, seen = time.monotonic(), now
            job.terminate()  # `gleaner run` ends its processes
            job.wait()

    def _take_results(self, folder: Path, left: list[str]) -> None:
        by_rank = []
        for rank in range(self._options.workers):
            file = folder / f"rank.{rank}"
            lines = file.read_text().splitlines() if file.exists() else []
            by_rank.append({line.split("\t")[0]: line.split("\t")[1:] for line in lines})
        for test in left:
            found = [each.get(test) for each in by_rank]
            failed = [each for each in found if each is not None and each[0] == "failed"]
            if failed:
                self._results[test] = ("failed", failed[0][1])
                return
            if None in found:
                last = (folder / "output").read_text()[-2000:]
                self._results[test] = ("failed", f"did not end: {' '.join(last.split())[-300:]}")
                return
            skipped = [each for each in found if each[0] == "skipped"]
            self._results[test] = ("not applicable", skipped[0][1]) if skipped else ("passed", "")


def run_as_rank(checkout: Path, folder: Path, arguments: list[str]) -> int:
    """Runs pytest with gleaner.horovod.torch as horovod.torch, in one rank of a job."""
    import pytest

    install_as_horovod()
    os.environ.setdefault("HOROVOD_RANK", os.environ.get("RANK", "0"))  # the tests then expect Gloo's behaviour
    os.environ.setdefault("HOROVOD_SIZE", os.environ.get("WORLD_SIZE", "1"))
    file = checkout / "test" / "parallel" / "test_torch.py"
    plugin = Recorder(folder)
    if "--collect" in arguments:
        arguments.remove("--collect")
        return pytest.main(["-q", "--collect-only", "-p", "no:cacheprovider", str(file), *arguments], plugins=[plugin])
    tests = [f"{file}::TorchTests::{name}" for name in (folder / "tests").read_text().split()]
    return pytest.main(["-q", "-x", "-p", "no:cacheprovider", *tests], plugins=[plugin])


class Recorder:
    """A plugin of pytest that writes a line for each test: name, outcome, reason."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def pytest_collection_finish(self, session: Any) -> None:
        if session.config.option.collectonly:
            (self._folder / "collected").write_text("\n".join(item.name for item in session.items))

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when != "call" and report.outcome == "passed":
            return
        reason = ""
        if report.outcome == "skipped":
            reason = str(report.longrepr[2])
        elif report.outcome == "failed":
            crash = getattr(report.longrepr, "reprcrash", None)
            reason = str(crash.message if crash else report.longrepr)
        line = f"{report.nodeid.split('::')[-1]}\t{report.outcome}\t{' '.join(reason.split())[:300]}\n"
        with (self._folder / f"rank.{os.environ['RANK']}").open("a") as file:
            file.write(line)


def install_as_horovod() -> None:
    """Makes `import horovod.torch` find gleaner.horovod.torch, and what Horovod's test utilities import."""
    import gleaner.horovod.torch
    import torch

    if hasattr(torch.optim, "Muon"):  # the tests take all optimizers of torch.optim, and are older than this one,
        torch.optim.Muon.__module__ = "newer"  # which refuses their models

    def in_thread(target: Any, args: tuple[Any, ...] = (), daemon: bool = True, **_: Any) -> threading.Thread:
        thread = threading.Thread(target=target, args=args, daemon=daemon)
        thread.start()
        return thread

    for name in ("horovod", "horovod.runner", "horovod.runner.util", "horovod.runner.util.threads"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["horovod.runner.util.threads"].in_thread = in_thread
    sys.modules["horovod"].torch = sys.modules["horovod.torch"] = gleaner.horovod.torch


if __name__ == "__main__":
    if sys.argv[1:2] == ["--as-rank"]:
        sys.exit(run_as_rank(Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:]))
    main()
