"""Finds and runs the programs `gleaner` and `gleaner-summer` that belong to this package.

A program is the first of these files that exists: bin/PROGRAM in this package (wheel); bin/PROGRAM of the prefix if
this package is in its lib/python3/dist-packages (CMake install); build/release/bin/PROGRAM of the source tree. PATH is
not searched, so the programs have the version of the package.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn


def gleaner() -> NoReturn:
    """Becomes the program `gleaner`, with the arguments of this process. The wheel's commands call it."""
    run("gleaner", sys.argv)


def gleaner_summer() -> NoReturn:
    """Becomes the program `gleaner-summer`, with the arguments of this process. The wheel's command calls it."""
    run("gleaner-summer", sys.argv)


def run(name: str, arguments: Sequence[str]) -> NoReturn:
    """Replaces this process by a program.

    Args:
        name: Name of the program.
        arguments: The program's arguments. The first one is the name under which the program was called, by which
            `gleaner` knows that kubectl runs it.

    Raises:
        SystemExit: The program is missing or cannot be run; the message is for the user.
    """
    found = find(name)
    # Python ignores these signals, and a new program would inherit that.
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    try:
        os.execv(found, list(arguments))
    except OSError as error:
        raise SystemExit(f"{name}: cannot run {found}: {error.strerror}") from None


def find(name: str) -> Path:
    """Returns the path of a program. Raises SystemExit, with a message for the user, if there is none."""
    candidates = list(program_candidates(name))
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    looked = ", ".join(map(str, candidates))
    raise SystemExit(
        f"{name}: the program is missing. Looked at {looked}. In a source tree, build it with 'make build'; elsewhere "
        "install the wheel, by 'pip install gleaner_train-….whl'."
    )


def program_candidates(name: str) -> Iterator[Path]:
    """Yields the paths at which find() looks for a program, in this order."""
    package = Path(__file__).resolve().parent
    yield package / "bin" / name
    # In a virtual environment, whose folder is named python3.N, the prefix has the wheel's command that calls find().
    if package.parents[1].name == "python3":
        yield package.parents[3] / "bin" / name
    yield package.parents[2] / "build" / "release" / "bin" / name
