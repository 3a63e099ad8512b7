"""Runs the tests. scripts/test --help describes the commands."""

from __future__ import annotations

import argparse
import fcntl
import functools
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Optional

from testing import changes, steps
from testing.changes import ChangeError
from testing.stages import STAGES, Stage
from testing.steps import LOGS, ROOT, Result, Verdict

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
        "touched runs the long stages that the changes since BASE need, by the table in scripts/testing/stages.py.\n"
        "BASE is a commit; the default is where this branch left its upstream, or the parent commit.",
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
    known = [stage.name for stage in STAGES]
    unknown = [name for name in names if name not in known]
    if unknown:
        fail(f"expected stages among {', '.join(known)}; got '{unknown[0]}'")
    return [stage for stage in STAGES if stage.name in names or (not names and (stage.in_check or arguments.long))]


def touched(base: Optional[str] = None) -> list[Stage]:
    base = base or changes.default_base(ROOT)
    files = changes.changed_files(ROOT, base)
    needed = changes.stages_for(files)
    print(f"{len(files)} files differ from {base}; they need {len(needed)} long stages")
    for stage, file in needed.items():
        print(f"  {stage}: {file}")
    return [stage for stage in STAGES if stage.name in needed]


class Passed:
    """Which stages passed with the present content of the tree, in build/test-logs/passed.json."""

    def __init__(self) -> None:
        self._path = LOGS / "passed.json"
        try:
            self._tree = changes.tree_of(ROOT)
        except ChangeError:  # not a git checkout: nothing is recorded
            self._tree = ""

    def stages(self) -> list[str]:
        try:
            return json.loads(self._path.read_text()).get(self._tree, [])
        except (OSError, ValueError):
            return []

    def add(self, stage: Stage) -> None:
        if self._tree:
            self._path.write_text(json.dumps({self._tree: sorted({*self.stages(), stage.name})}))


@functools.cache
def packages_are_there(packages: str) -> bool:
    """Installs the missing packages of a set of scripts/bootstrap, with its output on the screen."""
    return subprocess.run([ROOT / "scripts" / "bootstrap", packages], stdin=subprocess.DEVNULL).returncode == 0


def run_stage(stage: Stage, done: dict[str, list[Result]]) -> list[Result]:
    """Runs the steps that are not yet in `done`, and adds them to it. A step that failed before counts again."""
    if not packages_are_there(stage.packages):
        return [Result(f"scripts/bootstrap {stage.packages}", Verdict.FAILED)]
    for condition, reason in stage.requires:
        if subprocess.run(["bash", "-c", condition], cwd=ROOT, capture_output=True).returncode != 0:
            print(f"  skipped: {reason}")
            return [Result(stage.name, Verdict.SKIPPED, reason)]
    results: list[Result] = []
    for name, line in stage.steps.items():
        ran_before = name in done
        if not ran_before:
            done[name] = steps.run_step(name, line)
        ok = steps.all_passed(done[name])
        if not (ran_before and ok):
            results += done[name]
        if not ok and not steps.is_suite(line):
            break
    return results or [Result(f"{stage.name} (it ran no test)", Verdict.FAILED)]


def run_stages(stages: list[Stage], passed: Passed, resume: bool) -> tuple[list[Result], list[str]]:
    """Runs the stages. Returns the results, and a line about each stage."""
    results: list[Result] = []
    lines: list[str] = []
    done: dict[str, list[Result]] = {}
    for number, stage in enumerate(stages, 1):
        print(f"\n== {number}/{len(stages)} {stage.name}", flush=True)
        if resume and stage.name in passed.stages():
            lines.append(f"{stage.name}: passed before")
            print("  passed before with the same content of the tree")
            continue
        start, found = time.monotonic(), run_stage(stage, done)
        ok = steps.all_passed(found)
        is_skipped = all(result.verdict is Verdict.SKIPPED for result in found)
        how = "skipped" if is_skipped else "ok" if ok else "FAILED"
        lines.append(f"{stage.name}: {how}, {time.monotonic() - start:.0f} s")
        print(f"== {lines[-1]}", flush=True)
        if ok and not is_skipped:
            passed.add(stage)
        results += found
    return results, lines


def summarize(results: list[Result], lines: list[str], seconds: float) -> None:
    print(f"\nstages: {'; '.join(lines)}")
    for verdict, title in (
        (Verdict.FLAKY, "flaky, since they failed and then passed alone"),
        (Verdict.FAILED, "failed"),
    ):
        names = [result.name for result in results if result.verdict is verdict]
        if names:
            print("\n  ".join([f"{title}:", *names[:20]]))
    print(f"after {seconds / 60:.1f} minutes:")
    print(steps.counts(results))


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
    results, lines = run_stages(stages, Passed(), arguments.resume)
    summarize(results, lines, time.monotonic() - start)
    return 0 if steps.all_passed(results) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
