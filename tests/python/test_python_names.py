"""Tests that docs/python.md names only functions and classes that exist, for PyTorch and for numpy."""

from __future__ import annotations

import importlib.util
import re
import sys
from functools import reduce

import pytest
from conftest import ROOT

pytest.importorskip("torch")
sys.path.insert(0, str(ROOT / "comm-lib" / "python"))

TEXT = (ROOT / "docs" / "python.md").read_text()


def table_names() -> list[str]:
    """Returns the names in the table of functions: the identifiers at the beginning of texts in backquotes."""
    table = re.search(r"\| function \| what it does \|\n(.*?)\n\n", TEXT, re.DOTALL)
    assert table is not None
    functions = [row.split("|")[1] for row in table.group(1).splitlines()[1:]]
    told = re.findall(r"`(push_pull\w*|poll|synchronize)`", table.group(1))
    return sorted({*re.findall(r"`([A-Za-z_]\w*)", " ".join(functions)), *told})


def numpy_exceptions() -> set[str]:
    sentence = re.search(r"are as above, except (.*?) which need\s+PyTorch", TEXT, re.DOTALL)
    assert sentence is not None
    return set(re.findall(r"`(\w+)`", sentence.group(1)))


def test_the_table_names_functions() -> None:
    assert len(table_names()) > 25, table_names()
    assert numpy_exceptions() < set(table_names())


@pytest.mark.parametrize("name", table_names())
def test_a_function_of_the_table_exists(name: str) -> None:
    for_torch, for_numpy = importlib.import_module("gleaner.torch"), importlib.import_module("gleaner")
    assert name in for_torch.__all__
    assert (name in for_numpy.__all__) == (name not in numpy_exceptions())


def test_every_dotted_name_exists() -> None:
    names = set(re.findall(r"\b(gln|gleaner)((?:\.[A-Za-z_]\w*)+)", TEXT))
    assert ("gln", ".ddp_hook") in names
    files = {"gleaner.so"}
    for package, path in sorted(names):
        if package + path in files or f"lib{package}{path}" in TEXT:
            continue
        if package == "gleaner" and path.count(".") == 1 and importlib.util.find_spec(package + path) is not None:
            continue  # a package that may need a framework which is not installed
        loaded = importlib.import_module("gleaner.torch" if package == "gln" else "gleaner")
        importlib.import_module("gleaner.elastic")
        assert reduce(getattr, path.strip(".").split("."), loaded) is not None, package + path
