"""Tests that jobs find groups of near hosts by probes, where the order of hosts says nothing about their racks."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from conftest import GLEANER, ROOT, TIMEOUT, environment, patient

LAB = ROOT / "tests" / "lab" / "lab"
RACK_OF = [1, 0, 0, 1, 0, 1, 1, 0]  # by worker
GROUPS = {"h0 h3 h5 h6", "h1 h2 h4 h7"}


@pytest.fixture
def probes(tmp_path: Path) -> Path:
    """Writes probes between workers that are in the racks RACK_OF."""

    def matrix(near: float, far: float) -> list[list[float]]:
        return [[0 if a == b else near if ra == rb else far for b, rb in enumerate(RACK_OF)] for a, ra in pairs]

    pairs = list(enumerate(RACK_OF))
    file = tmp_path / "probes.json"
    names = [f"h{i}" for i in range(len(RACK_OF))]
    file.write_text(json.dumps({"hosts": names, "latency_us": matrix(5, 25), "bandwidth": matrix(1e10, 2.5e9)}))
    return file


def gleaner(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [str(GLEANER), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, env=environment())


def groups_of(topology: str) -> set[str]:
    """Returns the hosts of each group of a topology file."""
    groups: dict[str, list[str]] = {}
    made = json.loads(topology)
    names = {host["name"] for host in made["hosts"]}
    for link in made["links"]:
        if link["a"] in names:
            groups.setdefault(link["b"], []).append(link["a"])
    return {" ".join(group) for group in groups.values()}


@pytest.mark.parametrize("flags", [["two-level"], ["two-level", "--stages", "2,4"], ["auto"]])
def test_the_groups_of_a_job_are_the_racks(probes: Path, tmp_path: Path, flags: list[str]) -> None:
    summary = tmp_path / "summary.json"
    run = ["run", "--workers", 8, *patient(("--strategy", *flags)), "--topology", probes]
    run += ["--log-level", "info", "--summary", summary]
    done = gleaner(*run, "--", GLEANER, "bench", "push-pull", "--bytes", "8MiB", "--steps", "2", "--verify")
    assert done.returncode == 0, done.stderr
    shown = re.search(r"groups of near hosts, by probes hosts=(.*)", done.stderr)[1]
    assert set(shown.split("; ")) == GROUPS
    told = json.loads(summary.read_text())
    if flags[0] == "auto":
        assert {"two-level 2,4", "racks 2,4"} <= {each["strategy"] for each in told["candidates"][0]["candidates"]}
        return
    assert told["strategy"] == "two-level 2,4"
    ranks = told["rank_maps"][0]["ranks"]
    assert {frozenset(RACK_OF[w] for w in range(8) if ranks[w] // 4 == group) for group in (0, 1)} == {
        frozenset({0}),
        frozenset({1}),
    }


def test_topology_shows_groups(probes: Path) -> None:
    shown = gleaner("topology", probes, "--groups", "-o", "json")
    assert groups_of(shown.stdout) == GROUPS
    assert (
        "tier 1 - tier 2      2  2.5 Gbit/s    10 us  group-0 - core" in gleaner("topology", probes, "--groups").stdout
    )
    refused = gleaner("topology", "star:4", "--groups")
    assert refused.returncode == 2
    assert "no probes" in refused.stderr


def test_strategies_compares_groups(probes: Path) -> None:
    compared = gleaner("strategies", "--topology", probes, "--sizes", "1MiB", "-o", "json")
    assert compared.returncode == 0, compared.stderr
    assert ["two-level", [2, 4]] in [
        [each["strategy"], each["stages"]] for each in json.loads(compared.stdout)["strategies"]
    ]
