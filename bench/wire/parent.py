"""Builds the programs of another commit, which guard measures beside the present ones.

build/parent/COMMIT has the programs of one commit, for later runs with the same parent. Its sources are in a git
worktree, build/parent/source, which exists only during the build. All parents have the same path of sources, so that
ccache finds objects of earlier parents.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Callable, Optional

from wire import comparison
from wire.lab import ROOT

TARGETS = ["gleaner", "gleaner-summer"]  # with libgleaner.so, which gleaner uses
COMPLETE = "complete"  # a file in a finished build
KEPT = ["bin", "lib"]  # folders of a build that the programs need; objects take ten times as much room

Compile = Callable[[Path, Path, Path], None]  # takes the source, the build folder and the log


class Git:
    """Runs git in a repository. Hooks do not run."""

    def __init__(self, root: Path) -> None:
        self._command = ["git", "-C", str(root), "-c", "core.hooksPath=/dev/null"]

    def run(self, *arguments: str) -> str:
        done = subprocess.run([*self._command, *arguments], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"git {' '.join(arguments)} failed: {done.stderr.strip()}")
        return done.stdout.strip()

    def ask(self, *arguments: str) -> str:
        """Returns what git prints, or an empty string if git fails."""
        try:
            return self.run(*arguments)
        except (RuntimeError, OSError):
            return ""

    def commit(self, name: str) -> str:
        """Returns the hash of the commit of that name, or an empty string if there is none."""
        return self.ask("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")


def default_parent(root: Path = ROOT) -> str:
    git = Git(root)
    merge_base = git.ask("merge-base", "HEAD", "main@{upstream}")
    return comparison.default_parent(merge_base, git.commit("HEAD"), git.commit("HEAD~1"))


def find(name: str, root: Path = ROOT) -> str:
    """Returns the hash of the commit that the user names."""
    found = Git(root).commit(name)
    if not found:
        raise RuntimeError(f"expected a commit of this repository, got {name!r}")
    return found


def run_to_log(command: list[str], log: Path) -> None:
    """Runs the command, which ends with this function, however this function ends. The log gets its output."""
    with log.open("a") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        try:
            process.wait()
        except BaseException:
            process.terminate()  # ninja ends its compilers, too
            process.wait()
            raise
    if process.returncode != 0:
        raise RuntimeError(f"`{' '.join(command)}` ended with {process.returncode}; its output is in {log}")


def compile_programs(source: Path, build: Path, log: Path) -> None:
    configure = ["cmake", "-S", str(source), "-B", str(build), "--preset", "release", "-DGLEANER_TESTS=OFF"]
    run_to_log(configure, log)
    run_to_log(["ninja", "-C", str(build), *TARGETS], log)


@contextmanager
def worktree(git: Git, commit: str, source: Path) -> Iterator[None]:
    """Checks the commit out into `source`, inside the with-statement."""

    def remove() -> None:
        git.ask("worktree", "remove", "--force", str(source))
        shutil.rmtree(source, ignore_errors=True)

    remove()  # an earlier run may have been killed
    try:
        git.run("worktree", "add", "--quiet", "--force", "--detach", str(source), commit)
        yield
    finally:
        remove()


def remove_objects(build: Path) -> None:
    for path in build.iterdir():
        if path.is_file():
            path.unlink()
        elif path.name not in KEPT:
            shutil.rmtree(path)


def provide(commit: str, root: Path = ROOT, compile_: Optional[Compile] = None) -> Path:
    """Returns the folder with the build of the commit. Builds it if it is not there, and removes other commits'
    builds."""
    folder = root / "build" / "parent"
    build, log = folder / commit, folder / "build.log"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (build / COMPLETE).exists():
            return build
        for old in folder.iterdir():
            if old.is_dir():
                shutil.rmtree(old)
        log.unlink(missing_ok=True)
        print(f"building commit {commit[:12]} (log: {log})", flush=True)
        try:
            with worktree(Git(root), commit, folder / "source"):
                (compile_ or compile_programs)(folder / "source", build, log)
            remove_objects(build)
            (build / COMPLETE).touch()
        finally:
            if not (build / COMPLETE).exists():
                shutil.rmtree(build, ignore_errors=True)
    return build
