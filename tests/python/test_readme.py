"""Tests that the output of commands in README.md is real, and that its links lead to files."""

import shlex
import subprocess

from conftest import GLEANER, ROOT


def test_plan_example():
    lines = (ROOT / "README.md").read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("    $ gleaner plan"))
    shown = []
    for line in lines[start + 1 :]:
        if line and not line.startswith("    "):
            break
        shown.append(line[4:])
    command = shlex.split(lines[start].strip().removeprefix("$ gleaner "))
    printed = subprocess.run([GLEANER, *command], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "\n".join(shown).rstrip() == "\n".join(line.rstrip() for line in printed.splitlines()).rstrip()


def test_links_lead_to_files():
    for document in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md", *ROOT.glob("docs/*.md")]:
        for part in document.read_text().split("](")[1:]:
            target = part.split(")")[0].split("#")[0]
            if target and "://" not in target and "\n" not in target:
                assert (document.parent / target).exists(), f"{document.relative_to(ROOT)} links {target}"
