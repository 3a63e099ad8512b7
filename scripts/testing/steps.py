"""Runs one step of a stage (ctest, pytest or a command), with its output in build/test-logs, and returns its results.

ctest and pytest run the failed tests once more, one at a time, and the second run decides. A test that then passes is
flaky. The log of the first run keeps its output.
"""

from __future__ import annotations

import collections
import contextlib
import enum
import os
import re
import shlex
import signal
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from testing.stages import PROCESSORS

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "build" / "test-logs"
PYTHON = "/usr/bin/python3"  # Debian's, which has the packages that scripts/bootstrap installs
PROGRESS_SECONDS = 15
# A run with more failures than this has one common cause, and its failed tests do not run again.
MOST_RERUNS = 20
SOME_FAILED = {"ctest": 8, "pytest": 1}  # the exit status if all tests ran, and some failed
# A test of GoogleTest that passed without a report of a sanitizer.
PASSED_TEST = re.compile(r"^\[ RUN +\] .*\n(?:(?!\[ |.*Sanitizer|.*runtime error:).*\n)*\[ +OK \] .*\n", re.MULTILINE)
BROKEN_BUILD = re.compile(r"^(?:FAILED: |CMake Error).*\n(?:.*\n){0,12}", re.MULTILINE)
CRASHED = re.compile(r"^worker '\w+' crashed while running ", re.MULTILINE)


class Verdict(enum.Enum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    FLAKY = "flaky"  # failed, then passed when it ran alone; counts as passed


@dataclass(frozen=True)
class Result:
    """The result of one test, or of one command such as the build."""

    name: str
    verdict: Verdict
    reason: str = ""  # of a skipped test


def run_step(name: str, line: str) -> list[Result]:
    return run_suite(name, line) if is_suite(line) else run_command(name, line)


def is_suite(line: str) -> bool:
    return line.split()[0] in SOME_FAILED


def run_suite(name: str, line: str) -> list[Result]:
    """Runs `ctest PRESET FLAG...` or `pytest FLAG...`, then its failed tests again, and prints why tests failed."""
    tool, *words = shlex.split(line)
    if tool == "ctest":
        command = ["ctest", "--test-dir", f"build/{words.pop(0)}", "--output-on-failure", "--no-tests=error"]
        first, again = ["-j", str(PROCESSORS), *words], ["--rerun-failed", "-j", "1"]
    else:
        cache = ["-o", f"cache_dir={LOGS}/{name}.cache"]
        command = [PYTHON, "-m", "pytest", *words, *cache, "--durations=10"]
        first, again = ["--cache-clear"], ["--last-failed", "--last-failed-no-failures=none", "-n", "0"]
    log = LOGS / f"{name}.log"
    found, complete = _run_tests(log, tool, [*command, *first])
    failed = [test for test, result in found.items() if result.verdict is Verdict.FAILED]
    if complete and 0 < len(failed) <= MOST_RERUNS:
        print(f"  {len(failed)} failed; they run again, one at a time: {', '.join(failed)}", flush=True)
        log = LOGS / f"{name}-again.log"
        second, _ = _run_tests(log, tool, [*command, *again])
        passed = [test for test in failed if test in second and second[test].verdict is Verdict.PASSED]
        found.update({test: Result(test, Verdict.FLAKY) for test in passed})
    results = list(found.values())
    if not all_passed(results):
        _show(log)
    for reason, number in collections.Counter(one.reason for one in results if one.reason).most_common():
        print(f"  skipped {number}: {reason[:300]}")
    print(f"  {counts(results)} (all of the output: {(LOGS / name).relative_to(ROOT)}.log)", flush=True)
    return results


def _run_tests(log: Path, tool: str, words: Sequence[str]) -> tuple[dict[str, Result], bool]:
    """Runs ctest or pytest. Returns the results by the names of the tests, and whether all of the tests ran.

    If they did not, the run counts as one failure more.
    """
    junit = log.with_suffix(".xml")
    junit.unlink(missing_ok=True)
    flags = ["--output-junit", str(junit)] if tool == "ctest" else [f"--junitxml={junit}"]
    status = run(log, [*words, *flags], {"PYTHONPATH": f"{ROOT}/comm-lib/python", "PYTHONDONTWRITEBYTECODE": "1"})
    try:
        found = read_junit(junit)
    except (OSError, SyntaxError):  # xml's ParseError is a SyntaxError
        found = {}
    complete = bool(found) and status == (0 if all_passed(found.values()) else SOME_FAILED[tool])
    # pytest-xdist runs the file again, and gives up when this process crashes as well.
    complete = complete and not CRASHED.search(log.read_text(errors="replace"))
    if not complete:
        whole = f"{log.stem} ({tool} ended with status {status})"
        found[whole] = Result(whole, Verdict.FAILED)
    return found, complete


def read_junit(path: Path) -> dict[str, Result]:
    """Reads a JUnit file of ctest or pytest. Raises an error if the file is incomplete."""
    found: dict[str, Result] = {}
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name, owner, skipped = case.get("name", ""), case.get("classname", ""), case.find("skipped")
        name = name if owner in ("", name) else f"{owner}.{name}"
        reason = "" if skipped is None else skipped.get("message", "it did not run")
        # ctest calls a test "notrun" that skips itself, but also a test whose program does not exist.
        lacking = case.get("status") == "notrun" and not reason.startswith("SKIP_")
        if lacking or case.find("failure") is not None or case.find("error") is not None:
            found[name] = Result(name, Verdict.FAILED)
        elif name not in found:  # pytest gives a test that passed and failed in its teardown twice
            found[name] = Result(name, Verdict.SKIPPED if reason else Verdict.PASSED, reason)
    return found


def run_command(name: str, line: str) -> list[Result]:
    """Runs a command of the shell. Prints the output of a failure."""
    log = LOGS / f"{name}.log"
    status = run(log, ["bash", "-c", line])
    if status != 0:
        print(f"  FAILED {line} (exit status {status}; all of the output: {log.relative_to(ROOT)})")
        _show(log)
    counted = re.findall(r"^(\d+) passed, (\d+) failed$", log.read_text(errors="replace"), re.MULTILINE)
    passed, failed = map(int, counted[-1]) if counted else (int(status == 0), 0)
    failed = max(failed, int(status != 0 or passed == 0))
    return [Result(name, Verdict.PASSED)] * passed + [Result(name, Verdict.FAILED)] * failed


def run(log: Path, words: Sequence[str], variables: Mapping[str, str] = MappingProxyType({})) -> int:
    """Runs a command in the project's folder, with its output in `log`. Returns its exit status.

    Prints the last complete line of the output every 15 seconds, if it has changed. The command runs in a session of
    its own, which ends if this process is told to end.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    programs = f"{ROOT}/build/tools/bin:{os.environ['PATH']}"  # with those that scripts/bootstrap unpacks
    shown = ""
    # A signal between the start of the command and `try` would leave the command behind.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    with log.open("wb") as output, subprocess.Popen(
        words, cwd=ROOT, env={**os.environ, "PATH": programs, **variables}, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
        preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before),
    ) as process:  # fmt: skip
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            while True:
                try:
                    return process.wait(PROGRESS_SECONDS)
                except subprocess.TimeoutExpired:
                    complete = log.read_text(errors="replace").rpartition("\n")[0]
                    last = complete.rpartition("\n")[2].strip()[-100:]
                    if last != shown:
                        print(f"  {last}", flush=True)
                    shown = last
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            raise


def _show(log: Path) -> None:
    """Prints the lines of a log that most likely show why a command or a test failed."""
    text = PASSED_TEST.sub("", log.read_text(errors="replace"))
    broken = "".join(BROKEN_BUILD.findall(text)).splitlines()[:60]
    for line in broken or text.splitlines()[-200:]:
        print(f"    {line[:300]}")


def all_passed(results: Iterable[Result]) -> bool:
    return all(result.verdict is not Verdict.FAILED for result in results)


def counts(results: Iterable[Result]) -> str:
    """Returns "N passed, N failed, N skipped". A flaky test passed."""
    number = collections.Counter(result.verdict for result in results)
    passed = number[Verdict.PASSED] + number[Verdict.FLAKY]
    return f"{passed} passed, {number[Verdict.FAILED]} failed, {number[Verdict.SKIPPED]} skipped"
