"""Which long stages a change needs, by the table in CONTRIBUTING.md."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

HEADING = "### Stages that a change needs"


class ChangeError(Exception):
    """A message for the user."""


@dataclass(frozen=True)
class Rule:
    """Files below one of `paths` need `stages`. The longest path that matches decides."""

    paths: tuple[str, ...]
    stages: tuple[str, ...]


def read_rules(contributing: str) -> list[Rule]:
    """Reads the rows `| paths | stages |` below the heading. Raises ChangeError if there are none."""
    _, _, section = contributing.partition(HEADING + "\n")
    section = section.partition("\n#")[0]
    rules = []
    for row in re.findall(r"^\| (`.*?) \| (.*?) \|$", section, re.MULTILINE):
        paths = tuple(re.findall(r"`([^`]+)`", row[0]))
        rules.append(Rule(paths, tuple(re.findall(r"`([^`]+)`", row[1]))))
    if not rules:
        raise ChangeError(f'CONTRIBUTING.md has no table below "{HEADING}"')
    return rules


def rule_of(file: str, rules: list[Rule]) -> Optional[Rule]:
    """Returns the rule with the longest path that is `file` or a folder above it."""
    matches = [
        (len(path), rule)
        for rule in rules
        for path in rule.paths
        if file == path or file.startswith(path.rstrip("/") + "/")
    ]
    return max(matches, key=lambda match: match[0])[1] if matches else None


def stages_for(files: list[str], rules: list[Rule]) -> dict[str, str]:
    """Returns the stages that the files need, each with one file that needs it. A file without a rule needs none."""
    needed: dict[str, str] = {}
    for file in files:
        rule = rule_of(file, rules)
        for stage in rule.stages if rule else ():
            needed.setdefault(stage, file)
    return needed


def _git(root: Path, *words: str, variables: Optional[dict[str, str]] = None) -> str:
    try:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, env=variables)
    except FileNotFoundError:
        raise ChangeError("git is missing; scripts/bootstrap check installs it") from None
    if done.returncode != 0:
        raise ChangeError(f"git {words[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def default_base(root: Path) -> str:
    """Returns the commit where this branch left its upstream, or the parent commit if nothing was added since."""
    head = _git(root, "rev-parse", "HEAD")
    try:
        base = _git(root, "merge-base", "HEAD", "@{upstream}")
    except ChangeError:
        base = head
    return base if base != head else _git(root, "rev-parse", "HEAD~1")


def changed_files(root: Path, base: str) -> list[str]:
    """Returns the files that differ from `base`, with uncommitted changes and new files."""
    changed = _git(root, "diff", "--name-only", "--no-renames", base).splitlines()
    return sorted({*changed, *_git(root, "ls-files", "--others", "--exclude-standard").splitlines()})


def tree_of(root: Path) -> str:
    """Returns git's identifier of the working tree's content, with uncommitted changes and new files."""
    with tempfile.TemporaryDirectory() as folder:
        # An empty index: a copy of the checkout's own would be newer than the files whose times it holds, and git would
        # take a file that changed in the same second for unchanged.
        variables = {**os.environ, "GIT_INDEX_FILE": str(Path(folder) / "index")}
        _git(root, "add", "--all", variables=variables)
        return _git(root, "write-tree", variables=variables)
