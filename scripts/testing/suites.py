"""Runs suites of tests (ctest, pytest, or one command) and returns their results.

A test that fails runs once more, alone, and the second run decides. A test that then passes is flaky: the run's last
lines name it, and build/test-logs/flaky keeps the output of its first run.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Callable

from testing import commands, results
from testing.commands import LOGS, ROOT
from testing.results import Case, Verdict

PYTHON = "/usr/bin/python3"  # Debian's, which has the packages that scripts/bootstrap installs
# A run with more failures than this has one common cause, and its failed tests do not run again.
MOST_RERUNS = 20
FLAKY = LOGS / "flaky"
PROCESSORS = len(os.sched_getaffinity(0))
Runner = Callable[[str, Path], list[Case]]  # (address, JUnit file) -> results


def command(name: str, *words: str) -> Case:
    """Runs a command as one test, which passes if its exit status is 0. Prints the output of a failure."""
    log, start = LOGS / f"{re.sub(r'[^A-Za-z0-9]+', '-', name)}.log", time.monotonic()
    status = commands.run(log, words)
    case = Case(name, Verdict.PASSED if status == 0 else Verdict.FAILED, time.monotonic() - start)
    if status != 0:
        print(f"  FAILED {name} (exit status {status}; all of the output: {log.relative_to(ROOT)})")
        for line in commands.excerpt(log):
            print(f"    {line}")
    return case


def ctest(name: str, preset: str, *selection: str) -> list[Case]:
    """Runs the ctests of a preset's build that `selection` (flags of ctest) chooses."""

    def run(flags: Sequence[str], junit: Path) -> list[Case]:
        words = ["ctest", "--test-dir", f"build/{preset}", "--output-on-failure", "--no-tests=error"]
        words += ["--test-output-size-passed", "200000", "--output-junit", str(junit), *flags]
        return _results_of(name, junit, words)

    def alone(address: str, junit: Path) -> list[Case]:
        return run(["-R", f"^{re.escape(address)}$", "-j", "1"], junit)

    return _with_reruns(name, run([*selection, "-j", str(PROCESSORS)], LOGS / f"{name}.xml"), alone)


def pytest(name: str, folders: Sequence[str], marked: str = "", parallel: bool = False) -> list[Case]:
    """Runs the tests of folders whose markers match `marked` (empty: all), with Debian's Python.

    `parallel` uses all processors. A selection without a test fails.
    """
    beside = ["-n", str(PROCESSORS), "--dist", "loadfile"] if parallel else []

    def run(flags: Sequence[str], junit: Path) -> list[Case]:
        words = [PYTHON, "-m", "pytest", "-o", "junit_family=xunit1", f"--junitxml={junit}", *flags]
        return _results_of(name, junit, words)

    def alone(address: str, junit: Path) -> list[Case]:
        return run([address], junit)

    return _with_reruns(name, run([*folders, "-m", marked, *beside], LOGS / f"{name}.xml"), alone)


def _results_of(name: str, junit: Path, words: Sequence[str]) -> list[Case]:
    """Runs a command that writes a JUnit file, and returns its results.

    A command that writes no file, or fails without a failed test in it, counts as one failure.
    """
    junit.parent.mkdir(parents=True, exist_ok=True)
    junit.unlink(missing_ok=True)
    log = junit.with_suffix(".log")
    variables = {"PYTHONPATH": str(ROOT / "comm-lib" / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
    status = commands.run(log, words, variables)
    try:
        cases = results.read_junit(junit)
    except (OSError, SyntaxError) as error:  # xml's ParseError is a SyntaxError
        return [Case(name, Verdict.FAILED, text="\n".join([f"no results: {error}", *commands.excerpt(log)]))]
    if status != 0 and not any(case.verdict is Verdict.FAILED for case in cases):
        text = "\n".join([f"{words[0]} ended with status {status}", *commands.excerpt(log)])
        cases.append(Case(name, Verdict.FAILED, text=text))
    return cases


def _with_reruns(name: str, cases: list[Case], alone: Runner) -> list[Case]:
    """Runs failed tests once more, one at a time, and prints the tests that failed again."""
    failed = [case for case in cases if case.verdict is Verdict.FAILED]
    if len(failed) <= MOST_RERUNS:
        for case in (case for case in failed if case.address):
            print(f"  {case.name} failed; it runs again, alone", flush=True)
            _decide_again(case, alone(case.address, LOGS / f"{name}-alone.xml"))
    for case in failed:
        if case.verdict is Verdict.FAILED:
            results.show_failure(case)
    results.show_skips(cases)
    print(f"  {results.counts(cases)} (all of the output: {(LOGS / name).relative_to(ROOT)}.log)", flush=True)
    return cases


def _decide_again(case: Case, second: list[Case]) -> None:
    """Gives a failed test the verdict of its second run."""
    failed = next((one for one in second if one.verdict is Verdict.FAILED), None)
    if failed is not None:
        case.text = failed.text
    elif any(one.verdict is Verdict.PASSED for one in second):
        FLAKY.mkdir(parents=True, exist_ok=True)
        (FLAKY / f"{re.sub(r'[^A-Za-z0-9._-]+', '-', case.name)}.log").write_text(case.text)
        case.verdict = Verdict.FLAKY


def counted_output(name: str, *words: str) -> list[Case]:
    """Runs a command whose last line is "N passed, M failed". Prints the end of the output if the command fails."""
    log, start = LOGS / f"{name}.log", time.monotonic()
    status = commands.run(log, words)
    text = log.read_text(errors="replace")
    found = re.findall(r"^(\d+) passed, (\d+) failed$", text, re.MULTILINE)
    passed, failed = (int(number) for number in found[-1]) if found else (0, 0)
    seconds = time.monotonic() - start
    cases = [Case(f"{name} {number}", Verdict.PASSED) for number in range(passed)]
    cases += [Case(f"{name} failure {number}", Verdict.FAILED) for number in range(failed)]
    if status != 0 and failed == 0:
        cases.append(Case(name, Verdict.FAILED, seconds))
    if status != 0:
        for line in commands.excerpt(log):
            print(f"    {line}")
    print(f"  {results.counts(cases)} (all of the output: {log.relative_to(ROOT)})", flush=True)
    return cases


def skipped(name: str, reason: str) -> list[Case]:
    print(f"  skipped: {reason}")
    return [Case(name, Verdict.SKIPPED, text=reason)]
