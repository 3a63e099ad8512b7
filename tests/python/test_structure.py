"""Guards the size of classes, and how comments and names of tests begin."""

from __future__ import annotations

import collections
import functools
import json
import re
import shutil
import subprocess

import pytest
from conftest import ROOT
from test_documents import SOURCES, tracked

MAX_METHOD_LINES = 300
MAX_FIELDS = 20

# Classes that exceed a limit: {class: (lines of methods, fields)}. No class does. An entry fails if its class grows, if
# it is larger than its class, or if its class does not need it.
EXCEPTIONS: dict[str, tuple[int, int]] = {}

RIDDLES = "What|Who|Whoever|Of|Those|That"
COMMENT = re.compile(rf'^\s*(?://|#|"""|\*)\s*(?:{RIDDLES})\b', re.M)
TEST_NAME = re.compile(rf"TEST[A-Z_]*\(\w+,\s*(?:{RIDDLES})[A-Z]|def test_(?:{RIDDLES.lower()})_")


@functools.lru_cache
def classes() -> dict[str, tuple[int, int]]:
    """Returns the lines of methods and the number of fields of each class, struct and union of the C++ sources."""
    command = ["ctags", "--output-format=json", "--languages=C++", "--kinds-C++=fm", "--fields=+neK", "-R", "-f", "-"]
    listed = subprocess.run([*command, *SOURCES], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    lines: collections.Counter[str] = collections.Counter()
    fields: collections.Counter[str] = collections.Counter()
    for tag in map(json.loads, listed.splitlines()):
        if tag.get("scopeKind") not in ("class", "struct", "union"):
            continue
        if tag["kind"] == "function":
            lines[tag["scope"]] += tag.get("end", tag["line"]) - tag["line"] + 1
        else:
            fields[tag["scope"]] += 1
    return {name: (lines[name], fields[name]) for name in lines | fields}


def too_large(size: tuple[int, int]) -> bool:
    return size[0] > MAX_METHOD_LINES or size[1] > MAX_FIELDS


@pytest.mark.skipif(shutil.which("ctags") is None, reason="no ctags")
def test_classes_are_small() -> None:
    assert len(classes()) > 500, "ctags finds no classes"
    found = {name: size for name, size in classes().items() if too_large(size)}
    assert found == EXCEPTIONS, "split the class, or shrink its entry in EXCEPTIONS"


@pytest.mark.parametrize("pattern", [COMMENT, TEST_NAME], ids=["comments", "tests"])
def test_sentences_begin_with_a_named_thing(pattern: re.Pattern[str]) -> None:
    sources = [name for name in tracked() if name.endswith((".cc", ".h", ".c", ".py")) and "/build/" not in name]
    found = []
    for name in sorted(sources):
        text = (ROOT / name).read_text()
        found += [f"{name}:{text.count(chr(10), 0, match.start()) + 1}" for match in pattern.finditer(text)]
    assert not found, f"these begin with one of {RIDDLES}, which names nothing: {found}"


def test_clang_compiles_the_headers() -> None:
    found = [
        name for name in tracked() if name.endswith((".cc", ".h")) and "#include <ranges>" in (ROOT / name).read_text()
    ]
    assert not found, "clang 14, which builds the sanitizers, can't compile the views of libstdc++"
