"""Tests that the Python package has complete docstrings and type hints, and py.typed."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import BUILD, ROOT

pytest.importorskip("torch")
PACKAGES = ROOT / "comm-lib" / "python"
sys.path.insert(0, str(PACKAGES))

MODULES = ("gleaner", "gleaner.elastic", "gleaner.torch", "gleaner.torch.elastic")
NEVER_RAISE = {
    "gleaner.is_initialized",
    "gleaner.Session.attached",
    "gleaner.Session.in_flight",
    "gleaner.elastic.ObjectState",
    "gleaner.elastic.ObjectState.restore",
    "gleaner.elastic.ObjectState.save",
    "gleaner.elastic.State",
    "gleaner.elastic.State.move",
    "gleaner.elastic.State.register_reset_callbacks",
    "gleaner.elastic.run",
    "gleaner.torch.WarmUp.get_last_lr",
    "gleaner.torch.WarmUp.state_dict",
    "gleaner.torch.WarmUp.step",
    "gleaner.torch.elastic.TorchState",
    "gleaner.torch.elastic.TorchState.restore",
    "gleaner.torch.optimizer.AveragesGradients.skip_synchronize",
    "gleaner.torch.optimizer.AveragesGradients.state_dict",
}
# Classes whose objects users get from DistributedOptimizer() and CrossBarrier().
OPTIMIZERS = (
    "gleaner.torch.optimizer.AveragesGradients",
    "gleaner.torch.optimizer.AccumulatesDeltas",
    "gleaner.torch.cross_barrier.UpdatesInForward",
)


def public_objects() -> dict[str, Any]:
    """Returns the public functions and classes of the package by name, each once."""
    found: dict[int, tuple[str, Any]] = {}
    for module in MODULES:
        loaded = importlib.import_module(module)
        for name in loaded.__all__:
            value = getattr(loaded, name)
            if not inspect.ismodule(value):
                found.setdefault(id(value), (f"{module}.{name}", value))
    for name in OPTIMIZERS:
        module, _, attribute = name.rpartition(".")
        value = getattr(importlib.import_module(module), attribute)
        found[id(value)] = (name, value)
    return dict(found.values())


def public_methods(kind: type) -> Iterator[tuple[str, Any]]:
    """Yields the public methods that a class of this package defines itself."""
    for name, value in vars(kind).items():
        if not name.startswith("_") and inspect.isfunction(value):
            yield name, getattr(kind, name)


def is_plain(kind: type) -> bool:
    """Returns whether `kind` is a class whose constructor users do not call: a value, an exception, an optimizer."""
    return (
        issubclass(kind, (enum.Enum, BaseException)) or dataclasses.is_dataclass(kind) or "__init__" not in vars(kind)
    )


def callables() -> Iterator[tuple[str, str, Any]]:
    """Yields the name, the docstring and the callable for all public functions, constructors and methods."""
    for name, value in public_objects().items():
        if inspect.isfunction(value):
            yield name, inspect.getdoc(value) or "", value
            continue
        if not is_plain(value):
            yield name, inspect.getdoc(value) or "", value.__init__
        for method, function in public_methods(value):
            yield f"{name}.{method}", inspect.getdoc(getattr(value, method)) or "", function


def entries(docstring: str, section: str) -> set[str]:
    """Returns the names that a section of a docstring in Google's style describes, such as "Args"."""
    body = re.search(rf"^{section}:\n((?:(?: .*)?\n?)*)", docstring, re.MULTILINE)
    return set(re.findall(r"^ {4}\**(\w+): \S", body[1], re.MULTILINE)) if body else set()


def parameters(function: Any) -> set[str]:
    signature = inspect.signature(function)
    return {name for name in signature.parameters if name not in ("self", "args", "kwargs")}


@pytest.mark.parametrize(("name", "docstring", "function"), [pytest.param(*each, id=each[0]) for each in callables()])
def test_docstring_has_all_arguments_and_errors(name: str, docstring: str, function: Any) -> None:
    assert docstring, f"{name} has no docstring"
    assert entries(docstring, "Args") == parameters(function), f"{name}: Args and parameters differ"
    raises = entries(docstring, "Raises")
    assert bool(raises) == (name not in NEVER_RAISE), f"{name}: Raises names {raises or 'nothing'}"


@pytest.mark.parametrize(("name", "function"), [pytest.param(name, each, id=name) for name, _, each in callables()])
def test_type_hints_are_complete(name: str, function: Any) -> None:
    signature = inspect.signature(function)
    unhinted = [
        each.name for each in signature.parameters.values() if each.name != "self" and each.annotation is each.empty
    ]
    assert not unhinted, f"{name} has no type hints for {unhinted}"
    assert signature.return_annotation is not signature.empty, f"{name} has no type hint for its result"


def test_classes_have_docstrings() -> None:
    for name, value in public_objects().items():
        if inspect.isclass(value):
            assert value.__doc__, f"{name} has no docstring"
        if dataclasses.is_dataclass(value):
            fields = {each.name for each in dataclasses.fields(value)}
            assert entries(inspect.getdoc(value), "Attributes") == fields, f"{name}: Attributes and fields differ"


@pytest.mark.parametrize("function", ["push_pull", "push_pull_async", "accumulate", "accumulate_async", "broadcast"])
def test_numpy_and_torch_have_the_same_arguments(function: str) -> None:
    """Only the name of the first argument differs."""
    numpy_front, torch_front = (
        getattr(importlib.import_module(each), function) for each in ("gleaner", "gleaner.torch")
    )
    ours, theirs = (list(inspect.signature(each).parameters.values()) for each in (numpy_front, torch_front))
    assert [(each.name, each.default) for each in ours[1:]] == [(each.name, each.default) for each in theirs[1:]]


def test_options_are_checked_and_cannot_change() -> None:
    from gleaner.exchange import AccumulateOptions, PushPullOptions

    with pytest.raises(TypeError, match="pass a name as name=…"):
        PushPullOptions("weight")
    with pytest.raises(ValueError, match="needs the name of a running sum"):
        AccumulateOptions(None)
    options = PushPullOptions(average=False, name="weight")
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.name = "bias"


def test_installation_has_py_typed(tmp_path: Path) -> None:
    """Type checkers use the hints of a package only if it has this file (PEP 561)."""
    script = BUILD / "comm-lib" / "python" / "cmake_install.cmake"
    installing = ["cmake", f"-DCMAKE_INSTALL_PREFIX={tmp_path}", "-P", str(script)]
    subprocess.run(installing, check=True, capture_output=True, text=True)
    installed = tmp_path / "lib" / "python3" / "dist-packages" / "gleaner"
    assert (installed / "py.typed").is_file()
    assert (installed / "torch" / "__init__.py").is_file()


def test_wheel_has_py_typed() -> None:
    """The wheel takes all files of the package that git does not ignore."""
    assert 'wheel.packages = ["comm-lib/python/gleaner"]' in (ROOT / "pyproject.toml").read_text()
    marker = PACKAGES / "gleaner" / "py.typed"
    assert marker.is_file()
    if (ROOT / ".git").exists():
        assert subprocess.run(["git", "check-ignore", "-q", str(marker)], cwd=ROOT).returncode == 1
