"""Runs the tests. scripts/test --help describes the commands."""

from __future__ import annotations

import argparse
import fcntl
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Optional

from testing import changes, commands, results
from testing.changes import ChangeError
from testing.commands import LOGS, ROOT
from testing.results import Case, Verdict
from testing.stages import STAGES, Stage

FREE_BYTES = 4 << 30  # what the release build and the logs need


def parse(words: Sequence[str]) -> argparse.Namespace:
    width = max(len(stage.name) for stage in STAGES)
    rows = [f"  {stage.name:{width}}  {stage.usual:>6}  {stage.summary}" for stage in STAGES]
    check = ", ".join(stage.name for stage in STAGES if stage.in_check)
    parser = argparse.ArgumentParser(
        prog="scripts/test",
        usage="scripts/test [--long] [--resume] [--list] [STAGE ...]\n"
        "       scripts/test [--resume] [--list] touched [BASE]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=f"Runs the check ({check}), as `make test` does.\n"
        "With --long it runs all stages. With names it runs only these stages.\n"
        "touched runs the long stages that the changes since BASE need, by the table in CONTRIBUTING.md. BASE is a\n"
        "commit; the default is where this branch left its upstream, or the parent commit.",
        epilog="stages, with the usual durations on 2 cores once packages and compiled objects are there:\n"
        + "\n".join(rows)
        + "\n\nA stage that fails does not stop the next one. A test that fails runs once more, alone, and the second\n"
        "run decides. Output is in build/test-logs. The last line counts the tests.",
    )
    parser.add_argument("--long", action="store_true", help="run all stages")
    parser.add_argument("--resume", action="store_true", help="skip stages that passed with this content of the tree")
    parser.add_argument("--list", action="store_true", help="print the stages and run nothing")
    parser.add_argument("stages", nargs="*", metavar="STAGE", help="a stage, or touched [BASE]")
    return parser.parse_args(words)


def fail(message: str) -> None:
    print(f"test: {message}", file=sys.stderr)
    raise SystemExit(2)


def chosen(arguments: argparse.Namespace) -> list[Stage]:
    names = arguments.stages
    if names[:1] == ["touched"]:
        if len(names) > 2:
            fail("expected at most one commit after touched")
        return touched(*names[1:])
    unknown = [name for name in names if name not in {stage.name for stage in STAGES}]
    if unknown:
        fail(f"expected stages among {', '.join(stage.name for stage in STAGES)}; got '{unknown[0]}'")
    if names:
        return [stage for stage in STAGES if stage.name in names]
    return [stage for stage in STAGES if stage.in_check or arguments.long]


def touched(base: Optional[str] = None) -> list[Stage]:
    base = base or changes.default_base(ROOT)
    files = changes.changed_files(ROOT, base)
    needed = changes.stages_for(files, changes.read_rules((ROOT / "CONTRIBUTING.md").read_text()))
    unknown = set(needed) - {stage.name for stage in STAGES}
    if unknown:
        fail(f"the table in CONTRIBUTING.md names unknown stages: {', '.join(sorted(unknown))}")
    print(f"{len(files)} files differ from {base}; they need {len(needed)} long stages")
    for stage, file in needed.items():
        print(f"  {stage}: {file}")
    return [stage for stage in STAGES if stage.name in needed]


class Passed:
    """Which stages passed with which content of the tree, in build/test-logs/passed.json."""

    def __init__(self) -> None:
        self._path = LOGS / "passed.json"
        try:
            self._tree = changes.tree_of(ROOT)
        except ChangeError:  # not a git checkout: nothing is recorded
            self._tree = ""

    def _read(self) -> list[str]:
        try:
            return json.loads(self._path.read_text()).get(self._tree, [])
        except (OSError, ValueError):
            return []

    def has(self, stage: Stage) -> bool:
        return bool(self._tree) and stage.name in self._read()

    def add(self, stage: Stage) -> None:
        if self._tree:
            self._path.write_text(json.dumps({self._tree: sorted({*self._read(), stage.name})}))


def run_stages(stages: list[Stage], passed: Passed, resume: bool) -> tuple[list[Case], list[str]]:
    """Runs the stages. Returns the results, and a line about each stage."""
    cases: list[Case] = []
    lines: list[str] = []
    installed: set[str] = set()
    for number, stage in enumerate(stages, 1):
        print(f"\n== {number}/{len(stages)} {stage.name}", flush=True)
        if resume and passed.has(stage):
            lines.append(f"{stage.name}: passed before")
            print("  passed before with the same content of the tree")
            continue
        start, found = time.monotonic(), []
        if stage.packages not in installed:
            found.append(install_packages(stage.packages))
            installed.add(stage.packages)
        if all(case.verdict is Verdict.PASSED for case in found):
            found += stage.run()
        ok = not any(case.verdict is Verdict.FAILED for case in found)
        lines.append(f"{stage.name}: {'ok' if ok else 'FAILED'}, {time.monotonic() - start:.0f} s")
        print(f"== {lines[-1]}", flush=True)
        if ok and not all(case.verdict is Verdict.SKIPPED for case in found[1:]):
            passed.add(stage)
        cases += found
    return cases, lines


def install_packages(packages: str) -> Case:
    """Installs the missing packages of a set of scripts/bootstrap, with its output on the screen."""
    start = time.monotonic()
    status = subprocess.run([ROOT / "scripts" / "bootstrap", packages], stdin=subprocess.DEVNULL).returncode
    verdict = Verdict.PASSED if status == 0 else Verdict.FAILED
    return Case(f"bootstrap {packages}", verdict, time.monotonic() - start)


def summarize(cases: list[Case], lines: list[str], seconds: float) -> None:
    print()
    results.show_slowest(cases)
    print(f"stages: {'; '.join(lines)}")
    flaky = [case.name for case in cases if case.verdict is Verdict.FLAKY]
    if flaky:
        print("flaky, since they failed and then passed alone (the first outputs: build/test-logs/flaky):")
        for name in flaky:
            print(f"  {name}")
    failed = [case.name for case in cases if case.verdict is Verdict.FAILED]
    if failed:
        print("failed:")
        for name in failed[:20]:
            print(f"  {name}")
    print(f"after {seconds / 60:.1f} minutes:")
    print(results.counts(cases))


def main() -> int:
    arguments = parse(sys.argv[1:])
    signal.signal(signal.SIGTERM, lambda received, _: sys.exit(128 + received))
    start = time.monotonic()
    try:
        stages = chosen(arguments)
    except ChangeError as error:
        fail(str(error))
    if arguments.list:
        for stage in stages:
            print(f"{stage.name}: {stage.summary}, usually {stage.usual}")
        return 0
    LOGS.mkdir(parents=True, exist_ok=True)
    lock = (LOGS / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        fail("another scripts/test is running in this checkout; wait for it, or use another clone")
    free = shutil.disk_usage(LOGS).free
    if free < FREE_BYTES:
        fail(f"{ROOT / 'build'} has {free >> 20} MiB of free space; the check needs {FREE_BYTES >> 20} MiB")
    shutil.rmtree(LOGS / "flaky", ignore_errors=True)
    cases, lines = run_stages(stages, Passed(), arguments.resume)
    summarize(cases, lines, time.monotonic() - start)
    return 1 if any(case.verdict is Verdict.FAILED for case in cases) else 0


if __name__ == "__main__":
    try:
        status = main()
    except KeyboardInterrupt:
        status = 130
    finally:
        commands.end_all()
    sys.exit(status)
