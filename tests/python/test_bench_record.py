"""Tests what bench/guard compares ratios with, how it judges rows, and the build of the parent commit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "bench"))
from wire import jobs, parent, processor, record
from wire.comparison import Against, Try, Verdict, choose, default_parent, verdict

GENOA = {"processors": 2, "model": "AMD EPYC", "family": 25, "model_number": 17}
XEON = {"processors": 2, "model": "Intel(R) Xeon(R) Processor", "family": 6, "model_number": 143}
OLD = {"processors": 2, "model": "AMD EPYC", "kernel": "6.18.44"}


def test_a_processor_is_identified_by_its_name_and_numbers() -> None:
    block = "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\nflags\t: fpu\n"
    assert processor.identify(block + "\n" + block, 2) == GENOA
    arm = processor.identify("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n", 4)
    assert (arm["processors"], arm["family"], arm["model_number"]) == (4, 0x41, 0xD0C)
    assert processor.describe(GENOA) == "2 x AMD EPYC (family 25, model 17)"
    assert processor.describe(OLD) == "2 x AMD EPYC"


def test_processors_are_equal_if_no_known_field_differs() -> None:
    assert processor.is_same(GENOA, dict(GENOA))
    assert processor.is_same(OLD, GENOA), "an old record has only the name"
    assert not processor.is_same(GENOA, {**GENOA, "model_number": 1}), "the name may stand for several generations"
    assert not processor.is_same(GENOA, {**GENOA, "processors": 4})
    assert not processor.is_same(GENOA, XEON)


def test_the_record_is_compared_only_on_an_equal_processor() -> None:
    same = choose(OLD, GENOA, asked="", parent="p" * 40)
    assert same.against is Against.RECORD
    assert "equal processor: 2 x AMD EPYC" in same.why
    other = choose(XEON, GENOA, asked="", parent="p" * 40)
    assert (other.against, other.commit) == (Against.PARENT, "p" * 40)
    assert "Xeon" in other.why and "AMD EPYC" in other.why
    asked = choose(OLD, GENOA, asked="a" * 40, parent="p" * 40)
    assert (asked.against, asked.commit) == (Against.PARENT, "a" * 40)
    alone = choose(XEON, GENOA, asked="", parent="")
    assert alone.against is Against.NOTHING
    assert "--parent" in alone.why


def test_the_parent_is_the_merge_base_unless_upstream_has_the_present_commit() -> None:
    assert default_parent("base", "head", "before") == "base"
    assert default_parent("head", "head", "before") == "before"
    assert default_parent("", "head", "before") == "before"
    assert default_parent("", "head", "") == ""


def test_a_row_fails_if_it_is_low_in_two_tries() -> None:
    low, good = Try(0.71, 0.9), Try(0.73, 0.9)
    assert verdict([good]) is Verdict.OK
    assert verdict([low]) is Verdict.AGAIN
    assert verdict([low, good]) is Verdict.OK
    assert verdict([low, low]) is Verdict.FAILED
    assert verdict([Try(None, 0.9), low]) is Verdict.FAILED, "a row that cannot be measured is low"
    assert verdict([Try(0.5, None)]) is Verdict.OK, "the parent lacks what the row measures"


def test_the_line_of_a_row_names_its_base() -> None:
    assert record.judge("a row", 0.5, 0.91, "parent").endswith("parent  0.910: below 0.8 of the parent")


def test_programs_of_another_build_run_only_in_their_block(tmp_path: Path) -> None:
    def program() -> str:
        return jobs.bench(["--bytes", "8"], 1)[0]

    before = program()
    with pytest.raises(ValueError), jobs.programs_in(tmp_path):
        assert program() == str(tmp_path / "bin" / "gleaner")
        raise ValueError
    assert program() == before


def git(root: Path, *arguments: str) -> str:
    who = ["-c", "user.name=someone", "-c", "user.email=someone@example.com"]
    done = subprocess.run(["git", "-C", str(root), *who, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with the commits "one", "two" and "three" on main, each with a file that has that word."""
    root = tmp_path / "repository"
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch", "main")
    for word in ("one", "two", "three"):
        (root / "word").write_text(word)
        git(root, "add", "word")
        git(root, "commit", "--quiet", "--message", word)
    return root


def copy_word(source: Path, build: Path, log: Path) -> None:
    for folder in ("bin", "objects"):
        (build / folder).mkdir(parents=True)
        (build / folder / "word").write_text((source / "word").read_text())


def fail_to_compile(source: Path, build: Path, log: Path) -> None:
    copy_word(source, build, log)
    raise KeyboardInterrupt


def worktrees(root: Path) -> int:
    return len(git(root, "worktree", "list").splitlines())


def test_the_default_parent_is_read_from_the_repository(repository: Path) -> None:
    head, before = git(repository, "rev-parse", "HEAD"), git(repository, "rev-parse", "HEAD~1")
    assert parent.default_parent(repository) == before, "there is no upstream branch"
    git(repository, "branch", "upstream", "HEAD~2")
    git(repository, "branch", "--quiet", "--set-upstream-to", "upstream", "main")
    assert parent.default_parent(repository) == git(repository, "rev-parse", "HEAD~2")
    git(repository, "branch", "--force", "upstream", head)
    assert parent.default_parent(repository) == before
    assert parent.find("main~1", repository) == before
    with pytest.raises(RuntimeError, match="nonsense"):
        parent.find("nonsense", repository)


def test_there_is_no_parent_without_a_repository(tmp_path: Path) -> None:
    assert parent.default_parent(tmp_path) == ""


def test_a_parent_is_built_once_and_alone(repository: Path) -> None:
    one, two = git(repository, "rev-parse", "HEAD~2"), git(repository, "rev-parse", "HEAD~1")
    build = parent.provide(two, repository, copy_word)
    assert (build / "bin" / "word").read_text() == "two"
    assert not (build / "objects").exists()
    assert parent.provide(two, repository, fail_to_compile) == build, "it is not built again"
    assert (parent.provide(one, repository, copy_word) / "bin" / "word").read_text() == "one"
    assert not build.exists(), "only one build is kept"
    assert worktrees(repository) == 1
    assert (repository / "word").read_text() == "three"


def test_an_interrupted_build_leaves_nothing(repository: Path) -> None:
    two = git(repository, "rev-parse", "HEAD~1")
    with pytest.raises(KeyboardInterrupt):
        parent.provide(two, repository, fail_to_compile)
    left = [path.name for path in (repository / "build" / "parent").iterdir() if path.is_dir()]
    assert (left, worktrees(repository)) == ([], 1)


def test_a_build_follows_a_killed_one(repository: Path) -> None:
    """A killed run leaves its worktree, and half of a build."""
    two, folder = git(repository, "rev-parse", "HEAD~1"), repository / "build" / "parent"
    git(repository, "worktree", "add", "--quiet", "--detach", str(folder / "source"), "HEAD~2")
    (folder / two).mkdir()
    assert (parent.provide(two, repository, copy_word) / "bin" / "word").read_text() == "two"
    assert worktrees(repository) == 1
