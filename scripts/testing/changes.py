"""Finds what differs from a commit, and the long stages that these files need."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path, PurePath
from typing import Optional

from testing.stages import LONG_STAGES


class ChangeError(Exception):
    """A message for the user."""


def row_of(file: str) -> Optional[str]:
    """Returns the longest path in LONG_STAGES that is `file` or a folder above it."""
    return next((str(path) for path in (PurePath(file), *PurePath(file).parents) if str(path) in LONG_STAGES), None)


def stages_for(files: list[str]) -> dict[str, str]:
    """Returns the stages that the files need, each with one file that needs it. A file without a row needs none."""
    needed: dict[str, str] = {}
    for file in files:
        for stage in LONG_STAGES.get(row_of(file) or "", ()):
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
