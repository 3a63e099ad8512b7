"""Tests that scripts/report prints failed tests with their output, and counts all tests."""

import subprocess
from pathlib import Path

from conftest import ROOT

PROGRAM = """[==========] Running 3 tests from 1 test suite.
[ RUN      ] Suite.Good
what a test that passes logs
[       OK ] Suite.Good (1 ms)
[ RUN      ] Suite.Bad
sums.cc:12: Failure
[  FAILED  ] Suite.Bad (1 ms)
[ RUN      ] Suite.Races
WARNING: ThreadSanitizer: data race
[       OK ] Suite.Races (1 ms)
[ RUN      ] Suite.Ends
Segmentation fault"""


def test_a_failure_shows_the_failed_tests_and_their_output(tmp_path: Path) -> None:
    junit = tmp_path / "ctest.xml"
    junit.write_text(
        '<testsuite><testcase classname="suite_test" name="suite_test" status="fail"><failure message=""/>'
        f"<system-out>{PROGRAM}</system-out></testcase>"
        '<testcase classname="other_test" name="other_test" status="run"/>'
        '<testcase classname="left_test" name="left_test" status="notrun"/></testsuite>'
    )
    done = subprocess.run([ROOT / "scripts/report", junit], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "1", "1"]
    shown = [line.strip() for line in done.stderr.splitlines()]
    assert shown == [
        "FAILED suite_test.suite_test",
        "[==========] Running 3 tests from 1 test suite.",
        "[ RUN      ] Suite.Bad",
        "sums.cc:12: Failure",
        "[  FAILED  ] Suite.Bad (1 ms)",
        "[ RUN      ] Suite.Races",
        "WARNING: ThreadSanitizer: data race",
        "[ RUN      ] Suite.Ends",
        "Segmentation fault",
        "skipped left_test",
    ]
