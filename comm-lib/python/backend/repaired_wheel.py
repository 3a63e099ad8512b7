"""Builds wheels that run on machines without Gleaner's Debian libraries (the build backend of pyproject.toml).

scikit-build-core makes a wheel that links against the libraries of this machine. auditwheel then copies these libraries
into the wheel, under names of their own, and gives the wheel the tag of the oldest glibc that it runs with, such as
manylinux_2_35. The C and C++ libraries, and zlib, stay those of the machine on which the wheel is installed. The wheel
also gets the licenses of the Debian packages whose libraries it holds.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Optional

from scikit_build_core import build as backend
from scikit_build_core.build import (
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

COPYRIGHTS = Path("/usr/share/doc")  # PACKAGE/copyright is the license of a Debian package


def build_wheel(
    wheel_directory: str, config_settings: Optional[dict[str, Any]] = None, metadata_directory: Optional[str] = None
) -> str:
    """Builds the wheel in `wheel_directory` and returns its file name (PEP 517)."""
    with tempfile.TemporaryDirectory(prefix="gleaner-wheel-") as name:
        folder = Path(name)
        linked = folder / backend.build_wheel(name, config_settings, metadata_directory)
        _run("auditwheel", "repair", "--strip", "--wheel-dir", folder / "repaired", linked)
        (repaired,) = (folder / "repaired").iterdir()
        _run("wheel", "unpack", "--dest", folder / "unpacked", repaired)
        (content,) = (folder / "unpacked").iterdir()
        _add_licenses(content)
        _run("wheel", "pack", "--dest-dir", wheel_directory, content)
        return repaired.name


def _run(module: str, *arguments: str | Path) -> None:
    if subprocess.run([sys.executable, "-m", module, *map(str, arguments)]).returncode:
        raise SystemExit(f"{module} {arguments[0]} failed; its error is above")


def _add_licenses(content: Path) -> None:
    """Adds the licenses of the Debian packages whose libraries auditwheel has copied."""
    (information,) = content.glob("*.dist-info")
    folder = information / "licenses" / "debian"
    folder.mkdir(parents=True)
    for library in sorted(content.glob("*.libs/*")):
        packages = _packages_of(re.sub(r"-[0-9a-f]{8}\.so", ".so", library.name))  # auditwheel adds a checksum
        if not packages:
            print(f"no Debian package has {library.name}; the wheel lacks its license", file=sys.stderr)
        for package in packages:
            shutil.copyfile(COPYRIGHTS / package / "copyright", folder / package)


def _packages_of(file: str) -> set[str]:
    """Returns the names of the installed Debian packages that have a file of this name."""
    if shutil.which("dpkg-query") is None:
        return set()
    found = subprocess.run(["dpkg-query", "--search", f"*/{file}"], capture_output=True, text=True)
    return set(re.findall(r"^([^\s:]+)(?::\w+)?: /", found.stdout, re.MULTILINE))
