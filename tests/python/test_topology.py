"""Tests the command `gleaner topology`: its outputs, its flags, and that a topology survives its file."""

from __future__ import annotations

import json
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from conftest import GLEANER, TIMEOUT

HOSTS = {"hosts": ["a", "b"], "switches": ["s"]}
LINKS = [
    {"a": "a", "b": "s", "bandwidth": "25Gbit", "latency_us": 2},
    {"a": "b", "b": "s", "bandwidth": 1e9, "back_bandwidth": 5e8, "latency_us": 0.5},
]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [str(GLEANER), "topology", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)


def output(*arguments: object) -> str:
    result = run(*arguments)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return result.stdout


def topology(*arguments: object) -> dict:
    return json.loads(output(*arguments, "-o", "json"))


def file(tmp_path: Path, content: object) -> Path:
    path = tmp_path / "network.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.mark.parametrize(
    ("spec", "hosts", "switches", "links", "place"),
    [
        ("star:5", 5, 1, 5, [4]),
        ("fat-tree:4", 16, 20, 48, [3, 1, 1]),
        ("bigraph:4x16", 64, 16, 128, [1, 7, 3]),
        ("racks:3x4", 12, 4, 15, [2, 3]),
    ],
)
def test_specs(spec: str, hosts: int, switches: int, links: int, place: list[int]) -> None:
    made = topology(spec)
    assert len(made["hosts"]) == hosts
    assert len(made["switches"]) == switches
    assert len(made["links"]) == links
    assert made["hosts"][-1] == {"name": f"host-{hosts - 1}", "place": place}
    nodes = {node["name"] for node in made["hosts"] + made["switches"]}
    for link in made["links"]:
        assert set(link) == {"a", "b", "bandwidth", "latency_us"}
        assert {link["a"], link["b"]} <= nodes
        assert link["latency_us"] == 1
    assert made["links"][-1]["bandwidth"] == (400e9 if spec == "racks:3x4" else 100e9)


def test_speeds_of_links() -> None:
    flags = ["--bandwidth", "25Gbit", "--uplink", "10Gbit", "--latency", "500ns"]
    made = topology("racks:2x2", *flags)
    bandwidths = [link["bandwidth"] for link in made["links"] if "core" in (link["a"], link["b"])]
    assert bandwidths == [10e9, 10e9]
    assert {link["bandwidth"] for link in made["links"]} == {10e9, 25e9}
    assert {link["latency_us"] for link in made["links"]} == {0.5}
    for text, microseconds in [("0", 0), ("100.125ns", 0.100125), ("1.5us", 1.5), ("2ms", 2000), ("1s", 1e6)]:
        assert {link["latency_us"] for link in topology("star:2", "--latency", text)["links"]} == {microseconds}


@pytest.mark.parametrize("arguments", [["fat-tree:4"], ["bigraph:3x4", "--latency", "1.3us", "--bandwidth", "333"]])
def test_a_written_topology_is_read_back(tmp_path: Path, arguments: list[str]) -> None:
    written = output(*arguments, "-o", "json")
    path = file(tmp_path, written)
    assert output(path, "-o", "json") == written
    assert output(path) == output(*arguments)
    assert output(path, "-o", "svg") == output(*arguments, "-o", "svg")


def test_files_with_directions(tmp_path: Path) -> None:
    path = file(tmp_path, {**HOSTS, "links": LINKS})
    made = topology(path)
    assert made["links"][0] == {"a": "a", "b": "s", "bandwidth": 25e9, "latency_us": 2}
    assert made["links"][1] == LINKS[1]
    assert "1 Gbit/s up, 500 Mbit/s down" in output(path)


def test_probes(tmp_path: Path) -> None:
    latency = [[0, 10, 20], [10, 0, 30], [20, 30, 0]]
    bandwidth = [[0, 1e9, 2e9], [1e9, 0, 3e9], [2e9, 3e9, 0]]
    made = topology(file(tmp_path, {"hosts": ["a", "b", "c"], "latency_us": latency, "bandwidth": bandwidth}))
    speeds = {(link["a"], link["b"]): (link["bandwidth"], link["latency_us"]) for link in made["links"]}
    assert speeds == {
        ("a", "port-of-a"): (2e9, 0),
        ("b", "port-of-b"): (3e9, 0),
        ("c", "port-of-c"): (3e9, 0),
        ("port-of-a", "port-of-b"): (1e9, 10),
        ("port-of-a", "port-of-c"): (2e9, 20),
        ("port-of-b", "port-of-c"): (3e9, 30),
    }


def test_probes_of_many_hosts(tmp_path: Path) -> None:
    hosts = 500
    matrix = [[0 if i == j else 1 + (i * j) % 97 for j in range(hosts)] for i in range(hosts)]
    names = [f"h{i}" for i in range(hosts)]
    text = output(file(tmp_path, {"hosts": names, "latency_us": matrix, "bandwidth": matrix}))
    assert f"{hosts} hosts, {hosts} switches, {hosts * (hosts + 1) // 2} links" in text


def test_the_table_has_the_figures() -> None:
    text = output("fat-tree:4")
    assert "16 hosts, 20 switches, 48 links" in text
    assert "6 links, 6 us one way: host-0 to host-4, 4 shortest paths" in text
    assert "none: switches forward to others as fast as their hosts send" in text
    text = output("racks:4x8", "--uplink", "100Gbit")
    assert "one shortest path" in text
    assert "8 : 1 at rack-0: its hosts send 800 Gbit/s, its links to switches carry 100 Gbit/s" in text


def test_drawings() -> None:
    dot = output("racks:2x2", "-o", "dot")
    assert dot.startswith("graph topology {")
    assert dot.count(" -- ") == 6
    root = ElementTree.fromstring(output("bigraph:4x8", "-o", "svg"))
    namespace = "{http://www.w3.org/2000/svg}"
    names = {text.text for text in root.iter(f"{namespace}text")}
    assert {"host-0", "host-31", "upper-0", "lower-3"} <= names
    assert len(list(root.iter(f"{namespace}path"))) == 48
    result = run("star:129", "-o", "svg")
    assert result.returncode == 2
    assert "--output svg: a drawing of 129 hosts" in result.stderr
    assert "take json or dot" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["star:"], 2, "TOPOLOGY: 'star:': the number of hosts is ''"),
        (["star:0"], 2, "give 1 or more"),
        (["star:65537"], 2, "at most 65536"),
        (["fat-tree:5"], 2, "an even number from 2 to 64"),
        (["fat-tree:4194304"], 2, "an even number from 2 to 64"),
        (["bigraph:4"], 2, "write for example bigraph:4x8"),
        (["bigraph:1x65536"], 2, "more links than"),
        (["racks:4x-1"], 2, "the number of hosts in a rack is '-1'"),
        (["star:4", "--bandwidth", "fast"], 2, "--bandwidth: 'fast'"),
        (["star:4", "--bandwidth", "0"], 2, "--bandwidth"),
        (["racks:4x4", "--uplink", "-1Gbit"], 2, "--uplink: '-1Gbit'"),
        (["star:4", "--uplink", "1Gbit"], 2, "--uplink: star:4 has no link between switches"),
        (["star:4", "--latency", "5"], 2, "--latency: '5' is not a duration"),
        (["star:4", "--latency", "-5us"], 2, "--latency: '-5us'"),
        (["star:4", "--latency", "inf"], 2, "--latency: 'inf'"),
        (["star:4", "--latency", "us"], 2, "--latency: 'us'"),
        (["star:4", "--latency", "1.2.3us"], 2, "--latency: '1.2.3us'"),
        (["star:4", "--latency", "1us5ns"], 2, "--latency: '1us5ns'"),
        (["star:4", "-o", "png"], 2, "png"),
        (["ring:4"], 1, "No such file"),
        (["ring:4"], 1, "star:N, fat-tree:K"),
        (["/"], 1, "directory"),
    ],
)
def test_bad_command_lines(arguments: list[str], status: int, message: str) -> None:
    result = run(*arguments)
    assert result.returncode == status, result.stderr
    assert message in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "malformed JSON"),
        ("{", "malformed JSON"),
        ("[" * 100_000, "malformed JSON"),
        ("[]", "expected an object"),
        ({**HOSTS, "links": [LINKS[0]]}, "no path leads from host 'a' to host 'b'"),
        ({**HOSTS, "links": [*LINKS, {**LINKS[0], "a": "z"}]}, "link 2: \"a\" is 'z'"),
        ({**HOSTS, "links": [{**LINKS[0], "bandwith": 1}]}, "unknown field 'bandwith'"),
        ({**HOSTS, "hosts": ["a", "a"], "links": LINKS[:1]}, "'a' occurs twice"),
        ({"hosts": ["a", "b"], "latency_us": [[0, 1], [2, 0]], "bandwidth": [[0, 1], [1, 0]]}, "latency_us[0][1] is 1"),
        ({"hosts": ["a", "b"], "latency_us": [[0, 1], [1, 0]], "bandwidth": [[0, 0], [0, 0]]}, "bandwidth[0][1] is 0"),
        ({"hosts": ["a", "b"], "latency_us": [[0, float("nan")], [1, 0]], "bandwidth": [[0, 1], [1, 0]]}, "NaN"),
    ],
)
def test_bad_files(tmp_path: Path, content: object, message: str) -> None:
    result = run(file(tmp_path, content))
    assert result.returncode in (1, 2)
    assert message in result.stderr
    assert "network.json" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    "flag", [["--bandwidth", "1Gbit"], ["--uplink", "1Gbit"], ["--latency", "1us"], ["--overhead", "1us"]]
)
def test_a_file_states_the_speeds_of_its_links(tmp_path: Path, flag: list[str]) -> None:
    result = run(file(tmp_path, {**HOSTS, "links": LINKS}), *flag)
    assert result.returncode == 2
    assert f"{flag[0]}: a file states the speed of links and hosts" in result.stderr
