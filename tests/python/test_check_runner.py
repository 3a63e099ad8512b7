"""Tests scripts/testing: results of tests, tests that run again alone, and the stages that a change needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
from testing import changes, commands, results, suites
from testing.results import Case, Verdict
from testing.stages import STAGES

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


def test_results_of_ctest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    junit = tmp_path / "ctest.xml"
    junit.write_text(
        '<testsuite><testcase classname="suite_test" name="suite_test" time="2.5" status="fail"><failure message=""/>'
        f"<system-out>{PROGRAM}</system-out></testcase>"
        '<testcase classname="other_test" name="other_test" status="run"/>'
        '<testcase classname="left_test" name="left_test" status="notrun"/></testsuite>'
    )
    cases = results.read_junit(junit)
    assert [(case.name, case.verdict, case.seconds) for case in cases] == [
        ("suite_test", Verdict.FAILED, 2.5),
        ("other_test", Verdict.PASSED, 0),
        ("left_test", Verdict.SKIPPED, 0),
    ]
    assert results.counts(cases) == "1 passed, 1 failed, 1 skipped"
    results.show_failure(cases[0])
    assert [line.strip() for line in capsys.readouterr().out.splitlines()] == [
        "FAILED suite_test",
        "[==========] Running 3 tests from 1 test suite.",
        "[ RUN      ] Suite.Bad",
        "sums.cc:12: Failure",
        "[  FAILED  ] Suite.Bad (1 ms)",
        "[ RUN      ] Suite.Races",
        "WARNING: ThreadSanitizer: data race",
        "[ RUN      ] Suite.Ends",
        "Segmentation fault",
    ]


TESTS = """
import pathlib
import pytest

class TestInAClass:
    def test_flaky(self):  # passes from the second run on
        marker = pathlib.Path(__file__).with_name("ran")
        ran = marker.exists()
        marker.touch()
        assert ran, "the first run"

@pytest.mark.parametrize("value", ["a[b] c"])
def test_wrong(value):
    assert value == "right"

def test_good():
    pass
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with spaces in its name, in which suites.py keeps its logs."""
    logs = tmp_path / "logs of tests"
    logs.mkdir()
    monkeypatch.setattr(suites, "LOGS", logs)
    monkeypatch.setattr(suites, "FLAKY", logs / "flaky")
    for module in (suites, commands):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = long: long\n")
    return tmp_path


def test_a_failed_test_runs_again_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "test_sample.py").write_text(TESTS)
    cases = suites.pytest("sample", ["test_sample.py"], "not long", parallel=False)
    verdicts = {case.name.split(".")[-1]: case.verdict for case in cases}
    assert verdicts["test_good"] is Verdict.PASSED
    assert verdicts["test_flaky"] is Verdict.FLAKY
    assert [verdict for name, verdict in verdicts.items() if "test_wrong" in name] == [Verdict.FAILED]
    assert results.counts(cases) == "2 passed, 1 failed, 0 skipped"
    assert "the first run" in next((folder / "logs of tests" / "flaky").iterdir()).read_text()
    assert "AssertionError" in capsys.readouterr().out


def test_a_suite_without_results_fails(folder: Path) -> None:
    cases = suites.pytest("sample", ["no-such-folder"], "not long")
    assert [case.verdict for case in cases] == [Verdict.FAILED]
    assert "no-such-folder" in cases[0].text


def test_a_selection_without_tests_fails(folder: Path) -> None:
    (folder / "test_sample.py").write_text("def test_good():\n    pass\n")
    assert [case.verdict for case in suites.pytest("sample", ["test_sample.py"], "long")] == [Verdict.FAILED]
    assert [case.verdict for case in suites.pytest("sample", ["test_sample.py"])] == [Verdict.PASSED]


def test_many_failures_do_not_run_again(folder: Path) -> None:
    number = suites.MOST_RERUNS + 1
    (folder / "test_sample.py").write_text(f"import pytest\n@pytest.mark.parametrize('n', range({number}))\n"
                                           "def test_wrong(n):\n    open(__file__ + '.runs', 'a').write('x')\n"
                                           "    assert False\n")  # fmt: skip
    cases = suites.pytest("sample", ["test_sample.py"], "not long")
    assert [case.verdict for case in cases] == [Verdict.FAILED] * number
    assert len((folder / "test_sample.py.runs").read_text()) == number


RULES = changes.read_rules((ROOT / "CONTRIBUTING.md").read_text())


def test_the_longest_path_decides_which_stages_a_change_needs() -> None:
    assert set(changes.stages_for(["operator/reconcile/decide.cc"], RULES)) == {"charts", "e2e"}
    assert "rdma" in changes.stages_for(["common/transport/rdma/stripe.h"], RULES)
    assert set(changes.stages_for(["docs/cli.md", "README.md"], RULES)) == set()
    assert changes.stages_for(["operators/x", "docs/a"], RULES) == {}


def test_the_table_has_a_row_for_every_file_and_only_stages_and_files_that_exist() -> None:
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    without = [file for file in listed.stdout.splitlines() if changes.rule_of(file, RULES) is None]
    assert not without, f"no row of the table in CONTRIBUTING.md covers {without}"
    long_stages = {stage.name for stage in STAGES if not stage.in_check}
    assert {stage for rule in RULES for stage in rule.stages} <= long_stages
    assert not [path for rule in RULES for path in rule.paths if not (ROOT / path).exists()]


def test_changed_files_and_content_of_a_tree(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        done = subprocess.run(["git", *identity, *words], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    git("init", "-q")
    (tmp_path / "a").write_text("1")
    git("add", "a")
    git("commit", "-qm", "first")
    first = git("rev-parse", "HEAD")
    before = changes.tree_of(tmp_path)
    (tmp_path / "a").write_text("2")
    (tmp_path / "new").write_text("3")
    assert changes.changed_files(tmp_path, first) == ["a", "new"]
    assert changes.tree_of(tmp_path) != before
    assert git("diff", "--cached", "--name-only") == ""  # tree_of leaves the index alone
    git("add", "--all")
    git("commit", "-qm", "second")
    assert changes.default_base(tmp_path) == first
    (tmp_path / "a").write_text("1")
    (tmp_path / "new").unlink()
    assert changes.tree_of(tmp_path) == before
    with pytest.raises(changes.ChangeError, match="nonsense"):
        changes.changed_files(tmp_path, "nonsense")


def test_a_flaky_test_counts_as_passed() -> None:
    cases = [Case("a", Verdict.FLAKY), Case("b", Verdict.SKIPPED), Case("c", Verdict.PASSED)]
    assert results.counts(cases) == "2 passed, 0 failed, 1 skipped"


@pytest.mark.parametrize("words, message", [(["nonsense"], "got 'nonsense'"), (["touched", "a", "b"], "at most one")])
def test_mistakes_on_the_command_line(words: list[str], message: str) -> None:
    done = subprocess.run([ROOT / "scripts" / "test", *words], capture_output=True, text=True)
    assert done.returncode == 2
    assert message in done.stderr
