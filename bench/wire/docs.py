"""Writes measured results into a document, between <!-- NAME: ... --> and <!-- end of NAME -->."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any


def fill(document: str, name: str, content: str) -> str:
    """Returns the document with the text between the marks replaced by `content`."""
    marks = re.compile(rf"(<!-- {name}:[^\n]*-->\n).*?(<!-- end of {name} -->\n)", re.DOTALL)
    if len(marks.findall(document)) != 1:
        raise ValueError(f"expected one place between <!-- {name}: ... --> and <!-- end of {name} -->")
    return marks.sub(lambda match: f"{match[1]}{content.strip()}\n{match[2]}", document)


def section(measured: dict[str, Any], table: str, plots: list[Path], document: Path) -> str:
    """Returns a description of the machine, the table, and links to the plots."""
    images = [f"![{path.stem}]({os.path.relpath(path, document.parent)})" for path in plots]
    return "\n\n".join([taken(f"Up to {measured['steps']} steps each,", measured["machine"]), table, *images])


def taken(begin: str, machine: dict[str, Any]) -> str:
    """Returns a sentence that begins so and names the machine."""
    processors = f"{machine['processors']} cores of {machine['model']}"
    return f"{begin} on {processors}, Linux {machine['kernel']}, commit {machine['commit']}."
