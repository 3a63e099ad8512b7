"""Tests that jobs find groups of near hosts by probes, where the order of hosts says nothing about their racks."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import GLEANER, ROOT, TIMEOUT, environment, patient
from requirements import require_namespaces

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


def test_commands_say_if_groups_are_not_sure(tmp_path: Path) -> None:
    """Hosts with even numbers are near each other, but measurements are off by up to 40 %."""
    rows = [[0, 12.6, 10.4, 17.3, 6.1, 22.3], [12.6, 0, 14.3, 11.0, 20.3, 9.8], [10.4, 14.3, 0, 10.4, 8.1, 20.3]]
    rows += [[17.3, 11.0, 10.4, 0, 12.6, 9.8], [6.1, 20.3, 8.1, 12.6, 0, 17.8], [22.3, 9.8, 20.3, 9.8, 17.8, 0]]
    file = tmp_path / "probes.json"
    names = [f"h{i}" for i in range(6)]
    file.write_text(json.dumps({"hosts": names, "latency_us": rows, "bandwidth": [[1e13] * 6] * 6}))
    for arguments in (["topology", file, "--groups"], ["strategies", "--topology", file, "--sizes", "1MiB"]):
        done = gleaner(*arguments)
        assert done.returncode == 0, done.stderr
        assert "groups of near hosts: not sure" in done.stderr
    job = ["run", "--workers", 6, "--strategy", "two-level", "--topology", file, "--log-level", "info"]
    done = gleaner(*job, "--", "true")
    assert "groups of near hosts, by probes hosts=none, not sure" in done.stderr
    assert "or give --stages GROUPS,HOSTS" in done.stderr


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


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Path]:
    """Makes four hosts in two racks. Returns the file of the hosts, in an order that does not tell the racks."""
    require_namespaces()
    name, file = f"h{os.getpid() % 10**6}", tmp_path / "hosts.json"
    up = [LAB, "up", "--name", name, "--tiers", "2,2", "--rate", "80mbit", "--uplink", "20mbit", "--hosts-json", file]
    try:
        subprocess.run(up, check=True, capture_output=True, timeout=TIMEOUT)
        hosts = json.loads(file.read_text())
        hosts["workers"] = [hosts["workers"][i] for i in (0, 2, 1, 3)]
        file.write_text(json.dumps(hosts))
        yield file
    finally:
        subprocess.run([LAB, "down", "--name", name], capture_output=True)


@pytest.mark.long
def test_probes_of_a_lab_find_its_racks(lab: Path, tmp_path: Path) -> None:
    measured = gleaner("probe", "pairs", "--hosts", lab)
    assert measured.returncode == 0, measured.stderr
    file = tmp_path / "probes.json"
    file.write_text(measured.stdout)
    addresses = [host["address"] for host in json.loads(lab.read_text())["workers"]]
    assert json.loads(measured.stdout)["hosts"] == addresses
    found = gleaner("topology", file, "--groups", "-o", "json")
    assert groups_of(found.stdout) == {" ".join(addresses[::2]), " ".join(addresses[1::2])}


@pytest.mark.parametrize(
    ("hosts", "message"),
    [
        ([{"address": "127.0.0.2"}], "expected at least 2 hosts"),
        ([{"address": "127.0.0.2"}, {"address": "127.0.0.3", "prefix": ["/none/such"]}], "127.0.0.3: "),
        ([{"address": "127.0.0.2"}, {"address": "127.0.0.3", "prefix": ["false"]}], "127.0.0.3: "),
    ],
)
def test_hosts_that_fail_are_named(tmp_path: Path, hosts: list[dict], message: str) -> None:
    file = tmp_path / "hosts.json"
    file.write_text(json.dumps({"workers": hosts}))
    done = gleaner("probe", "pairs", "--hosts", file)
    assert done.returncode != 0
    assert message in done.stderr


def test_pairs_are_symmetric(tmp_path: Path) -> None:
    file = tmp_path / "hosts.json"
    addresses = ["127.0.0.2", "127.0.0.3", "127.0.0.4"]
    file.write_text(json.dumps({"workers": [{"address": address} for address in addresses]}))
    done = gleaner("probe", "pairs", "--hosts", file, "--token-file", tmp_path / "token")
    assert done.returncode == 0, done.stderr
    probes = json.loads(done.stdout)
    assert probes["hosts"] == addresses
    for field in ("latency_us", "bandwidth"):
        for i, row in enumerate(probes[field]):
            assert row == [column[i] for column in probes[field]]
            assert [value > 0 for value in row] == [i != j for j in range(3)]
    assert len(probes["overhead_us"]) == 3
    assert all(value >= 0 for value in probes["overhead_us"]) and any(probes["overhead_us"])
    measured = tmp_path / "probes.json"
    measured.write_text(done.stdout)
    shown = json.loads(gleaner("topology", measured, "-o", "json").stdout)
    assert [host.get("overhead_us", 0) for host in shown["hosts"]] == probes["overhead_us"]


def test_peers_need_the_secret(tmp_path: Path) -> None:
    """A server answers the peer that knows its secret, and ends with SIGTERM."""
    for name in ("ours", "theirs"):
        (tmp_path / name).write_text(f"{name}\n")
    command = [GLEANER, "probe", "serve", "--listen", "0.0.0.0:0", "--token-file", tmp_path / "ours"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        port = server.stdout.readline().strip().rpartition(":")[2]
        for secret, host, message in [
            ("theirs", "127.0.0.2", "secret"),
            ("ours", "127.0.0.1", "this machine itself"),
            ("ours", "127.0.0.2", ""),
        ]:
            done = gleaner("probe", "peers", "--token-file", tmp_path / secret, f"{host}:{port}")
            assert done.returncode == (1 if message else 0), done.stderr
            assert message in done.stderr
        line = json.loads(done.stdout)
        assert line["peer"] == f"127.0.0.2:{port}"
        assert line["latency_us"] > 0 and line["bandwidth"] > 0 and line["overhead_us"] >= 0
    finally:
        server.terminate()
        assert server.wait(TIMEOUT) == 0
