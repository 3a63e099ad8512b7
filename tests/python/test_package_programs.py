"""Tests that the Python package runs its own programs, and that package, library and programs have one version."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from conftest import GLEANER, LIBRARY, ROOT, SUMMER, environment

sys.path.insert(0, str(ROOT / "comm-lib" / "python"))

SUMMER_SCRIPT = "import gleaner._programs as programs; programs.gleaner_summer()"


def package_in(folder: Path, programs: Mapping[str, Path] = MappingProxyType({})) -> Path:
    """Copies the package into the folder, with these programs in its folder bin. Returns the copy's folder."""
    package = folder / "gleaner"
    shutil.copytree(ROOT / "comm-lib" / "python" / "gleaner", package)
    (package / "bin").mkdir()
    for name, program in programs.items():
        (package / "bin" / name).symlink_to(program)
    return package


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Python with the package in `folder`."""
    return subprocess.run(
        [sys.executable, *arguments], env=environment(PYTHONPATH=str(folder)), capture_output=True, text=True
    )


def fake_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_all_versions_agree(tmp_path: Path) -> None:
    import gleaner

    package_in(tmp_path, {"gleaner": GLEANER, "gleaner-summer": SUMMER})
    project = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    library = ctypes.CDLL(str(LIBRARY))
    library.gln_version.restype = ctypes.c_char_p
    assert project is not None
    assert project[1] == gleaner.__version__ == library.gln_version().decode()
    assert run(tmp_path, "-m", "gleaner", "--version").stdout.split()[-1] == gleaner.__version__
    assert run(tmp_path, "-c", SUMMER_SCRIPT, "--version").stdout.split()[-1] == gleaner.__version__


def test_module_without_arguments_prints_the_help(tmp_path: Path) -> None:
    package_in(tmp_path, {"gleaner": GLEANER})
    done = run(tmp_path, "-m", "gleaner")
    assert done.returncode == 0, done.stderr
    assert "gleaner run --workers 2" in done.stdout


def test_module_passes_arguments_and_status_on(tmp_path: Path) -> None:
    package = package_in(tmp_path)
    fake_program(package / "bin" / "gleaner", 'echo "$@"; exit 7')
    done = run(tmp_path, "-m", "gleaner", "run", "a b")
    assert (done.returncode, done.stdout) == (7, "run a b\n")


def test_a_program_ends_by_a_broken_pipe(tmp_path: Path) -> None:
    """Python ignores SIGPIPE; the program that it becomes must not."""
    package = package_in(tmp_path)
    fake_program(package / "bin" / "gleaner", "kill -PIPE $$; echo survived")
    assert run(tmp_path, "-m", "gleaner").returncode == -signal.SIGPIPE


def test_a_missing_program_is_an_error_that_tells_what_to_do(tmp_path: Path) -> None:
    package_in(tmp_path)
    done = run(tmp_path, "-m", "gleaner")
    assert done.returncode == 1
    assert done.stderr.startswith("gleaner: the program is missing. Looked at ")
    assert "pip install" in done.stderr


def test_the_programs_of_the_package_go_first(tmp_path: Path, monkeypatch) -> None:
    package = package_in(tmp_path / "comm-lib" / "python")
    fake_program(tmp_path / "path" / "gleaner", "echo path")
    fake_program(tmp_path / "build" / "release" / "bin" / "gleaner", "echo built")
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}{os.pathsep}{os.environ['PATH']}")
    assert run(package.parent, "-m", "gleaner").stdout == "built\n"
    fake_program(package / "bin" / "gleaner", "echo own")
    assert run(package.parent, "-m", "gleaner").stdout == "own\n"


def test_an_installed_prefix_has_its_programs_in_bin(tmp_path: Path) -> None:
    package = package_in(tmp_path / "lib" / "python3" / "dist-packages")
    fake_program(tmp_path / "bin" / "gleaner", "echo prefix")
    assert run(package.parent, "-m", "gleaner").stdout == "prefix\n"


def test_the_command_of_a_virtual_environment_does_not_call_itself(tmp_path: Path) -> None:
    """The folder bin of a virtual environment has the command that looks for the program."""
    package = package_in(tmp_path / "lib" / "python3.13" / "site-packages")
    fake_program(tmp_path / "bin" / "gleaner", "echo the command")
    assert run(package.parent, "-m", "gleaner").returncode == 1
