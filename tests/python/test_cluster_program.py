"""Tests that gleaner runs gleaner-cluster for the commands about a cluster, and needs it for nothing else."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import GLEANER

PLAN = ["plan", "--workers", "2", "--bandwidth", "1Gbit", "--bytes", "1M"]


@pytest.fixture()
def alone(tmp_path: Path) -> Path:
    """A gleaner without gleaner-cluster beside it."""
    return Path(shutil.copy(GLEANER, tmp_path / "gleaner"))


def run(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "KUBECONFIG": "/nonexistent"}
    return subprocess.run([program, *arguments], capture_output=True, text=True, env=environment, timeout=60)


@pytest.mark.parametrize(
    "arguments",
    [["top"], ["status", "-A"], ["explain", "digits"], ["plan", "digits"], ["topology", "--kubeconfig", "any"]],
)
def test_missing_program_is_named(alone: Path, arguments: list[str]) -> None:
    done = run(alone, *arguments)
    assert done.returncode == 1
    assert done.stderr.startswith(f"gleaner {arguments[0]}: expected the program {alone}-cluster")
    assert "make build" in done.stderr


def test_topology_without_a_cluster_asks_for_its_argument() -> None:
    done = run(GLEANER, "topology")
    assert done.returncode == 2
    assert "TOPOLOGY: give star:N, fat-tree:K, bigraph:MxN" in done.stderr
    assert "without it the network of a cluster is shown, but there is no kubeconfig at /nonexistent" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--bandwidth", "1Gbit"], "TOPOLOGY: give it; --groups, --bandwidth,"),
        (["--groups"], "TOPOLOGY: give it; --groups, --bandwidth,"),
        (["star:4", "--kubeconfig", "any"], "the topology of a cluster is shown without TOPOLOGY and --machine"),
        (["--machine", "--context", "any"], "the topology of a cluster is shown without TOPOLOGY and --machine"),
    ],
)
def test_topology_is_of_a_cluster_or_of_a_file(arguments: list[str], message: str) -> None:
    done = run(GLEANER, "topology", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_plan_of_numbers_needs_no_other_program(alone: Path) -> None:
    assert run(alone, *PLAN).stdout == run(GLEANER, *PLAN).stdout != ""


def test_name_is_that_of_the_called_program(tmp_path: Path) -> None:
    plugin = tmp_path / "kubectl-gleaner"
    plugin.symlink_to(GLEANER)
    assert run(GLEANER, "top").stderr.startswith("gleaner top: ")
    assert run(plugin, "top").stderr.startswith("kubectl gleaner top: ")


def test_help_names_commands_as_the_program_was_called() -> None:
    plugin = GLEANER.with_name("kubectl-gleaner")
    script = run(GLEANER, "completion", "bash").stdout
    commands = re.findall(r"^    '((?: [a-z][a-z-]*)*)'\) words=", script, re.MULTILINE)
    assert {"", " run", " probe pairs", " status"} <= set(commands)
    for command in commands:
        text = run(plugin, *command.split(), "--help").stdout
        assert f"Usage: kubectl gleaner{command} [OPTIONS]" in text, command
        assert re.findall(r"(?<!kubectl )\bgleaner [a-zA-Z].*", text) == [], command
        assert "kubectl gleaner" not in run(GLEANER, *command.split(), "--help").stdout


def test_completion_is_that_of_a_program() -> None:
    """A shell can't complete `kubectl gleaner` by a script of its own: that word is kubectl's."""
    for shell in ("bash", "zsh"):
        arguments = ("completion", shell)
        assert run(GLEANER.with_name("kubectl-gleaner"), *arguments).stdout == run(GLEANER, *arguments).stdout


def test_gleaner_links_no_client_of_the_api_server() -> None:
    def libraries(program: Path) -> str:
        return subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout

    assert "libcpprest" in libraries(GLEANER.with_name("gleaner-cluster"))
    assert "libcpprest" not in libraries(GLEANER)
