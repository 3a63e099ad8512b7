"""Finds programs and files, both in this tree with build/release and in a bundle, which has the same folders."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
MANIFEST = ROOT / "manifest.json"  # only a bundle has one
RECORD = ROOT / "tests" / "gpu" / "record.json"  # the results that docs/gpu.md shows
DOCUMENT = ROOT / "docs" / "gpu.md"
PROGRAMS = ROOT / "tests" / "gpu" / "programs"
BUILD = ROOT if MANIFEST.exists() else Path(os.environ.get("GLEANER_BUILD", ROOT / "build" / "release")).resolve()
LIBRARY = BUILD / "lib" / "libgleaner.so"
CUDA_DOUBLE = BUILD / "tests" / "doubles" / "libcuda.so.1"
LOADER = BUILD / "runtime" / "ld-linux-x86-64.so.2"


def program(name: str) -> Path:
    """Returns the path of a program of the build."""
    found = next((path for path in (BUILD / "bin" / name, BUILD / "tests" / name) if path.exists()), None)
    if found is None:
        raise FileNotFoundError(f"{name} is neither in {BUILD / 'bin'} nor in {BUILD / 'tests'}; build it first")
    return found


def native(name: str) -> list[str]:
    """Returns the command that runs a program of the build.

    The bundle's own C library runs it on a machine whose C library is too old. This is no way for libgleaner.so, which
    a Python of the machine opens.
    """
    path = program(name)
    if not LOADER.exists():
        return [str(path)]
    tried = subprocess.run([str(path), "--help"], capture_output=True, text=True)
    if "GLIBC" not in tried.stderr:
        return [str(path)]
    return [str(LOADER), "--library-path", str(LOADER.parent), str(path)]


def commit() -> str:
    """Returns the commit of the bundle or of the tree; empty if it is not known."""
    if MANIFEST.exists():
        return str(manifest()["commit"])
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return found.stdout.strip()


def manifest() -> dict[str, Any]:
    return json.loads(MANIFEST.read_text())
