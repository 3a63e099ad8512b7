"""The results of tests: reads them from JUnit files, and prints them."""

from __future__ import annotations

import collections
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

LINES_PER_FAILURE = 80


class Verdict(Enum):
    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    FLAKY = "flaky"  # failed, then passed when it ran alone; counts as passed


@dataclass
class Case:
    """One test, or one command such as the build.

    `address` is what the test's runner calls the test: a name of ctest, or a node id of pytest.
    """

    name: str
    verdict: Verdict
    seconds: float = 0.0
    text: str = ""  # output of a failed test; reason of a skipped one
    address: str = ""


def read_junit(path: Path) -> list[Case]:
    """Reads a JUnit file of ctest, or of pytest with junit_family=xunit1. Raises an error if the file is incomplete."""
    return [_case_of(element) for element in ElementTree.parse(path).getroot().iter("testcase")]


def _case_of(element: ElementTree.Element) -> Case:
    name, owner = element.get("name", ""), element.get("classname", "")
    case = Case(
        name=name if owner in ("", name) else f"{owner}.{name}",
        verdict=Verdict.PASSED,
        seconds=float(element.get("time") or 0),
        address=_address_of(element),
    )
    skipped = element.find("skipped")
    if element.find("failure") is not None or element.find("error") is not None:
        case.verdict, case.text = Verdict.FAILED, _output_of(element)
    elif skipped is not None or element.get("status") in ("notrun", "disabled"):
        case.verdict = Verdict.SKIPPED
        case.text = (skipped.get("message") if skipped is not None else "") or "it did not run"
    return case


def _address_of(element: ElementTree.Element) -> str:
    name, file = element.get("name", ""), element.get("file")
    if file is None:
        return name
    module = file.removesuffix(".py").replace("/", ".")
    owner = element.get("classname", "")
    if owner == "" and name == module:  # an error while pytest imported the module
        return file
    classes = owner.removeprefix(module).removeprefix(".")
    return "::".join(part for part in (file, *classes.split("."), name) if part)


def _output_of(element: ElementTree.Element) -> str:
    parts = [
        child.text or child.get("message") or ""
        for child in element
        if child.tag in ("failure", "error", "system-out", "system-err")
    ]
    return "\n".join(part.strip() for part in parts if part.strip())


def without_passed_tests(lines: Iterable[str]) -> list[str]:
    """Removes the lines of passed tests from the output of a GoogleTest program, unless they have sanitizer reports."""
    kept: list[str] = []
    test: list[str] = []  # lines since the last [ RUN      ]
    for line in lines:
        if line.startswith("[ RUN "):
            kept += test
            test = [line]
        elif line.startswith("[       OK ]"):
            kept += test if any("Sanitizer" in said or "runtime error:" in said for said in test) else []
            test = []
        elif test:
            test.append(line)
        elif line and not line.startswith("[----------]"):
            kept.append(line)
    return kept + test


def show_failure(case: Case) -> None:
    print(f"  FAILED {case.name}")
    for line in without_passed_tests(case.text.splitlines())[-LINES_PER_FAILURE:]:
        print(f"    {line[:300]}")


def show_skips(cases: Iterable[Case]) -> None:
    """Prints each reason for which tests were skipped, with the number of tests."""
    reasons = collections.Counter(case.text for case in cases if case.verdict is Verdict.SKIPPED)
    for reason, number in reasons.most_common():
        print(f"  skipped {number}: {reason[:300]}")


def show_slowest(cases: Iterable[Case], number: int = 10) -> None:
    print("slowest tests:")
    for case in sorted(cases, key=lambda case: -case.seconds)[:number]:
        print(f"  {case.seconds:6.1f} s  {case.name}")


def counts(cases: Iterable[Case]) -> str:
    """Returns "N passed, N failed, N skipped". A flaky test passed."""
    number = collections.Counter(case.verdict for case in cases)
    passed = number[Verdict.PASSED] + number[Verdict.FLAKY]
    return f"{passed} passed, {number[Verdict.FAILED]} failed, {number[Verdict.SKIPPED]} skipped"
