"""Tests scripts/testing: results of tests, tests that run again alone, and the stages that a change needs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, TIMEOUT

sys.path.insert(0, str(ROOT / "scripts"))
from testing import __main__ as runner
from testing import changes, steps
from testing.stages import LONG_STAGES, STAGES, Stage
from testing.steps import Verdict

PROGRAM = """[ RUN      ] Suite.Good
a log line of a test that passes
[       OK ] Suite.Good (1 ms)
[ RUN      ] Suite.Bad
sums.cc:12: Failure
[  FAILED  ] Suite.Bad (1 ms)
[ RUN      ] Suite.Races
WARNING: ThreadSanitizer: data race
[       OK ] Suite.Races (1 ms)
[ RUN      ] Suite.AlsoGood
[       OK ] Suite.AlsoGood (1 ms)
[ RUN      ] Suite.Ends
Segmentation fault
"""

CTESTS = """cmake_minimum_required(VERSION 3.20)
project(sample NONE)
enable_testing()
add_test(NAME good COMMAND true)
add_test(NAME prints COMMAND sh -c "cat '${CMAKE_SOURCE_DIR}/output'; exit 1")
add_test(NAME flaky COMMAND sh -c "mkdir ran && echo 'the first run' && exit 1 || true")
add_test(NAME crashes COMMAND sh -c "kill -SEGV $$")
add_test(NAME no_program COMMAND /nonexistent/program)
add_test(NAME skips COMMAND sh -c "exit 77")
set_tests_properties(skips PROPERTIES SKIP_RETURN_CODE 77)
set_tests_properties(good skips PROPERTIES LABELS calm)
"""

PYTESTS = """
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

@pytest.fixture
def ends_wrong():
    yield
    assert False

def test_teardown(ends_wrong):
    pass

@pytest.mark.skip(reason="no device")
def test_skips():
    pass

@pytest.mark.long
def test_good():
    pass
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with spaces in its name, in which steps run and keep their logs."""
    root = tmp_path / "a tree"
    logs = root / "build" / "test-logs"
    logs.mkdir(parents=True)
    monkeypatch.setattr(steps, "ROOT", root)
    monkeypatch.setattr(steps, "LOGS", logs)
    monkeypatch.setattr(runner, "ROOT", root)
    monkeypatch.setattr(runner, "LOGS", logs)
    monkeypatch.setattr(runner, "packages_are_there", lambda packages: True)
    (root / "pytest.ini").write_text("[pytest]\nmarkers = long: long\n")
    return root


def verdicts(results: list[steps.Result]) -> dict[str, str]:
    return {result.name.split(".")[-1]: result.verdict.value for result in results}


def test_ctest_runs_failed_tests_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "CMakeLists.txt").write_text(CTESTS)
    (folder / "output").write_text(PROGRAM)
    subprocess.run(["cmake", "-S", folder, "-B", folder / "build" / "sample"], check=True, capture_output=True)
    found = steps.run_step("sample", "ctest sample")
    assert verdicts(found) == {
        "good": "passed",
        "prints": "failed",
        "flaky": "flaky",
        "crashes": "failed",
        "no_program": "failed",
        "skips": "skipped",
    }
    assert steps.counts(found) == "2 passed, 3 failed, 1 skipped"
    shown = capsys.readouterr().out
    assert "Suite.Bad" in shown and "data race" in shown and "[ RUN      ] Suite.Ends" in shown
    assert "Good" not in shown
    assert "the first run" in (folder / "build" / "test-logs" / "sample.log").read_text()
    assert verdicts(steps.run_step("sample", "ctest sample -L calm")) == {"good": "passed", "skips": "skipped"}
    assert steps.counts(steps.run_step("sample", "ctest sample -L nothing")) == "0 passed, 1 failed, 0 skipped"


@pytest.mark.parametrize("flags", ["", " -n 2 --dist loadfile"])
def test_pytest_runs_failed_tests_again(folder: Path, capsys: pytest.CaptureFixture[str], flags: str) -> None:
    (folder / "test_sample.py").write_text(PYTESTS)
    found = steps.run_step("sample", f"pytest test_sample.py -m 'not long'{flags}")
    expected = {
        "test_flaky": "flaky",
        "test_wrong[a[b] c]": "failed",
        "test_teardown": "failed",
        "test_skips": "skipped",
    }
    assert verdicts(found) == expected
    shown = capsys.readouterr().out
    assert "AssertionError" in shown and "skipped 1: no device" in shown
    assert "the first run" in (folder / "build" / "test-logs" / "sample.log").read_text()
    assert verdicts(steps.run_step("sample", f"pytest test_sample.py -m long{flags}")) == {"test_good": "passed"}


def test_a_crash_of_pytest_fails(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A process of pytest that crashes may take other tests with it, so these results do not decide."""
    (folder / "test_sample.py").write_text(
        "import os, pathlib\ndef test_crashes():\n    if not os.path.exists('ran'):\n"
        "        pathlib.Path('ran').touch()\n        os.abort()\n"
    )
    for flags, reason in (("", "Fatal Python error"), (" -n 1 --dist loadfile", "crashed while running")):
        assert not steps.all_passed(steps.run_step("sample", f"pytest test_sample.py{flags}"))
        assert reason in capsys.readouterr().out
        (folder / "ran").unlink()


@pytest.mark.parametrize("text", ["import nothing_like_this", "import os\nos.abort()", "def test_good(): pass"])
def test_a_run_of_pytest_that_reaches_no_test_fails(folder: Path, text: str) -> None:
    (folder / "test_sample.py").write_text(text)
    assert not steps.all_passed(steps.run_step("sample", "pytest test_sample.py -m long"))


def test_many_failures_do_not_run_again(folder: Path) -> None:
    number = steps.MOST_RERUNS + 1
    (folder / "test_sample.py").write_text(f"import pytest\n@pytest.mark.parametrize('n', range({number}))\n"
                                           "def test_wrong(n):\n    open(__file__ + '.runs', 'a').write('x')\n"
                                           "    assert False\n")  # fmt: skip
    assert steps.counts(steps.run_step("sample", "pytest test_sample.py")) == f"0 passed, {number} failed, 0 skipped"
    assert len((folder / "test_sample.py.runs").read_text()) == number


@pytest.mark.parametrize(
    "line, counted",
    [
        ("true", "1 passed, 0 failed"),
        ("false", "0 passed, 1 failed"),
        ("echo '3 passed, 0 failed'", "3 passed, 0 failed"),
        ("echo '3 passed, 2 failed'; false", "3 passed, 2 failed"),
        ("echo '3 passed, 0 failed'; false", "3 passed, 1 failed"),
        ("echo '0 passed, 0 failed'", "0 passed, 1 failed"),
    ],
)
def test_a_command_counts_as_one_test_or_as_its_last_line_says(folder: Path, line: str, counted: str) -> None:
    assert steps.counts(steps.run_step("sample", line)) == f"{counted}, 0 skipped"


def test_a_failed_build_shows_its_errors(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps.run_step("sample", "echo '[1/2] good.o'; echo 'FAILED: bad.o'; echo 'bad.cc:1: error'; exit 3")
    shown = capsys.readouterr().out
    assert "exit status 3" in shown and "bad.cc:1: error" in shown
    assert "[1/2]" not in shown.split("FAILED: bad.o", 2)[2]


def stage(name: str, *lines: str, requires: tuple[tuple[str, str], ...] = ()) -> Stage:
    named = {line: line for line in lines}
    return Stage(name, "", "", "check", named, requires)


def test_a_failed_build_ends_its_stages_and_runs_once(folder: Path) -> None:
    stages = [stage("first", "touch begun", "echo x >>builds; false", "touch tested")]
    stages += [stage("second", "echo x >>builds; false", "touch tested"), stage("third", "touch begun", "true")]
    results, lines = runner.run_stages(stages, runner.Passed(), False)
    assert [line.split(",")[0] for line in lines] == ["first: FAILED", "second: FAILED", "third: ok"]
    assert steps.counts(results) == "2 passed, 2 failed, 0 skipped"
    assert (folder / "builds").read_text() == "x\n"
    assert not (folder / "tested").exists()


def test_a_stage_without_its_requirements_is_skipped_and_one_without_tests_fails(folder: Path) -> None:
    stages = [stage("first", "true", requires=(("true", ""), ("false", "no device"))), stage("second")]
    results, _ = runner.run_stages(stages, runner.Passed(), False)
    assert [(result.verdict, result.reason) for result in results] == [
        (Verdict.SKIPPED, "no device"),
        (Verdict.FAILED, ""),
    ]


def test_resume_skips_stages_that_passed_with_the_same_tree(folder: Path) -> None:
    (folder / ".gitignore").write_text("build\nruns\n")
    subprocess.run(["git", "init", "-q", folder], check=True)
    stages = [stage("good", "echo good >>runs"), stage("bad", "echo bad >>runs; false")]
    for _ in range(2):
        runner.run_stages(stages, runner.Passed(), True)
    assert (folder / "runs").read_text().split() == ["good", "bad", "bad"]
    (folder / "new").touch()
    runner.run_stages(stages[:1], runner.Passed(), True)
    assert (folder / "runs").read_text().split() == ["good", "bad", "bad", "good"]


def test_an_interrupted_run_ends_its_command(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    command = f"exec >{fifo}; echo begins; sleep {TIMEOUT}; echo ends"
    # A test that runs in the background may have inherited that SIGINT is ignored.
    program = (
        "import signal; from pathlib import Path; from testing import steps; "
        "signal.signal(signal.SIGINT, signal.default_int_handler); "
        f"steps.run(Path('log'), ['bash', '-c', '{command}'])"
    )
    variables = {**os.environ, "PYTHONPATH": str(ROOT / "scripts")}
    runner = subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path, env=variables, stderr=subprocess.DEVNULL)
    with fifo.open() as output:
        assert output.readline() == "begins\n"
        runner.send_signal(signal.SIGINT)
        assert output.read() == ""
    assert runner.wait(TIMEOUT) != 0


def test_the_longest_path_decides_which_stages_a_change_needs() -> None:
    assert set(changes.stages_for(["operator/reconcile/decide.cc"])) == {"charts", "e2e"}
    assert "rdma" in changes.stages_for(["common/transport/rdma/stripe.h"])
    assert set(changes.stages_for(["docs/cli.md", "README.md"])) == set()
    assert changes.stages_for(["operators/x", "docs/a"]) == {}


def test_the_table_has_a_row_for_every_file_and_only_stages_and_files_that_exist() -> None:
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    without = [file for file in listed.stdout.splitlines() if changes.row_of(file) is None]
    assert not without, f"no row of scripts/testing/stages.py covers {without}"
    long_stages = {stage.name for stage in STAGES if not stage.in_check}
    assert {stage for stages in LONG_STAGES.values() for stage in stages} <= long_stages
    assert not [path for path in LONG_STAGES if not (ROOT / path).exists()]


def test_each_name_of_a_step_is_one_command() -> None:
    named = {(name, line) for stage in STAGES for name, line in stage.steps.items()}
    assert len({name for name, _ in named}) == len(named)


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


@pytest.mark.parametrize("words, message", [(["nonsense"], "got 'nonsense'"), (["touched", "a", "b"], "at most one")])
def test_mistakes_on_the_command_line(words: list[str], message: str) -> None:
    done = subprocess.run([ROOT / "scripts" / "test", *words], capture_output=True, text=True)
    assert done.returncode == 2
    assert message in done.stderr
