"""Tests the command `gleaner sim`: its JSON against closed forms, its sweeps and its errors."""

import itertools
import json
import os
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from test_plan_network import random_tree

SOURCE = Path(__file__).resolve().parents[2]
BUILD = os.environ.get("GLEANER_BUILD", SOURCE / "build/release")
GLEANER = Path(os.environ.get("GLEANER_BIN_DIR", Path(BUILD) / "bin")) / "gleaner"
MIB = 1 << 20


def run(*arguments, command="sim"):
    return subprocess.run([GLEANER, command, *map(str, arguments)], capture_output=True, text=True, timeout=240)


def answer(*arguments, command="sim"):
    result = run(*arguments, "-o", "json", command=command)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def sim(topology, algorithm, *arguments, size="64MiB"):
    return answer("--topology", topology, "--algorithm", algorithm, "--bytes", size, *arguments)


def close(value):
    return pytest.approx(value, rel=1e-3)


def test_a_ring_on_a_star():
    result = sim("star:8", "ring", "--bandwidth", "10Gbit", "--latency", "5us")
    step = 10e-6 + 64 * MIB / 8 * 8 / 10e9
    assert set(result) == {"bytes", "seconds", "bound_seconds", "bound_by", "steps", "events"}
    assert result["seconds"] == close(14 * step)
    assert result["bound_seconds"] == close(2 * 7 / 8 * 64 * MIB * 8 / 10e9)
    assert result["bound_by"] == "the links of 8 hosts"
    assert len(result["steps"]) == 14
    assert set(result["steps"][0]["worst_link"]) == {"from", "to", "flows"}
    assert result["steps"][0]["worst_link"]["flows"] == 1
    assert sum(step["seconds"] for step in result["steps"]) == close(result["seconds"])


@pytest.mark.parametrize("summers", [0, 2, 4])
def test_summers_reach_the_bound(summers):
    members = ["--summers", summers, "--bandwidth", "100Gbit"]
    result = sim("star:8", "summers", "--ranks", 4, *members, "--partition-bytes", "4KiB", "--latency", "0s")
    plan = answer("--workers", 4, *members, "--bytes", "64MiB", command="plan")
    assert result["bound_seconds"] == pytest.approx(plan["bound_seconds"], rel=1e-9)
    assert result["seconds"] == close(result["bound_seconds"])


@pytest.mark.parametrize("seed", range(12))
def test_summers_follow_the_plan_of_the_network(tmp_path, seed):
    network, workers, summers = random_tree(seed)
    (tmp_path / "network.json").write_text(json.dumps(network))
    job = ["--topology", tmp_path / "network.json", "--summers", summers, "--bytes", "64MiB"]
    job += ["--partition-bytes", "16KiB"]
    planned = answer("--workers", workers, *job, command="plan")
    result = answer("--algorithm", "summers", "--ranks", workers, *job)
    assert result["seconds"] == pytest.approx(planned["seconds"], rel=0.03)
    assert result["bound_seconds"] <= planned["bound_seconds"] * (1 + 1e-9)


def test_summers_keep_a_rank_map(tmp_path):
    """The rack with the slow uplink has the workers, wherever they are in the topology."""
    job = ["--bandwidth", "10Gbit", "--uplink", "10Gbit", "--ranks", 4, "--summers", 2, "--partition-bytes", "16KiB"]
    job += ["--placement", "in-order"]
    (tmp_path / "map").write_text("".join(f"host-{host} slots=1\n" for host in (4, 5, 6, 7, 0, 1)))
    plain = sim("racks:2x4", "summers", *job)["seconds"]
    assert sim("racks:2x4", "summers", *job, "--rank-map", tmp_path / "map")["seconds"] == pytest.approx(plain)


def partitions(members):
    """Yields all partitions of a list into parts."""
    if not members:
        yield []
        return
    for rest in partitions(members[1:]):
        yield [members[:1], *rest]
        for i, part in enumerate(rest):
            yield [*rest[:i], members[:1] + part, *rest[i + 1 :]]


def least_cut(network, part):
    """Returns the least bandwidth of links that separate some hosts from the others, in Gbit/s."""
    switches = [switch["name"] for switch in network["switches"]]
    cuts = []
    for sides in itertools.product((False, True), repeat=len(switches)):
        inside = {*part, *itertools.compress(switches, sides)}
        cuts.append(
            sum(link["bandwidth"] for link in network["links"] if (link["a"] in inside) != (link["b"] in inside))
        )
    return min(cuts) / 1e9


@pytest.mark.parametrize("seed", [0, 4, 6, 10, 12, 16, 17, 20])
def test_the_bound_is_that_of_the_best_partition(tmp_path, seed):
    """Where all links are nearly as fast, many of them bind together."""
    network, workers, summers = random_tree(seed)
    workers, summers = min(workers, 6), min(summers, 2)
    for link in network["links"]:
        link["bandwidth"] = 10**10 + link["bandwidth"] // 10
    (tmp_path / "network.json").write_text(json.dumps(network))
    members = [host["name"] for host in network["hosts"]][: workers + summers]
    used = {*members, *(switch["name"] for switch in network["switches"])}
    network["links"] = [link for link in network["links"] if link["a"] in used]
    best = 0
    for parts in partitions(members):
        cuts = [(least_cut(network, part), any(name in members[:workers] for name in part)) for part in parts]
        of_workers = [cut for cut, is_worker in cuts if is_worker]
        n = len(of_workers)
        if n > 1:
            helping = (n - 2) / n * sum(cut for cut, is_worker in cuts if not is_worker)
            best = max(best, 1 / min(of_workers), 2 * (n - 1) / (sum(of_workers) + helping))
    job = ["--ranks", workers, "--summers", summers]
    result = sim(tmp_path / "network.json", "summers", *job)
    assert result["bound_seconds"] == pytest.approx(best * 64 * MIB * 8 / 1e9, rel=1e-9)


def test_a_fast_host_lowers_the_bound(tmp_path):
    hosts = [{"name": f"h{i}"} for i in range(5)]
    links = [
        {"a": f"h{i}", "b": f"rack{min(i, 1)}", "bandwidth": (100 if i == 0 else 10) * 10**9, "latency_us": 0}
        for i in range(5)
    ]
    links += [{"a": f"rack{i}", "b": "core", "bandwidth": 100 * 10**9, "latency_us": 0} for i in range(2)]
    network = {"hosts": hosts, "switches": [{"name": name} for name in ("rack0", "rack1", "core")], "links": links}
    (tmp_path / "network.json").write_text(json.dumps(network))
    cut = ["--partition-bytes", "64KiB"]
    result = sim(tmp_path / "network.json", "racks", "--stages", "5,1", *cut)
    assert result["bound_seconds"] == close(64 * MIB * 8 / 10e9)
    assert result["seconds"] >= result["bound_seconds"]


def test_partitions_overlap_as_in_a_job():
    """Four partitions of the planned size are in flight, not one; fewer bytes in flight would take longer."""
    tree = ["--bandwidth", "200Mbit", "--partition-bytes", "plan"]
    result = sim("star:8", "double-tree", *tree)
    assert result["seconds"] < 1.35 * result["bound_seconds"]


def test_rank_maps(tmp_path):
    def seconds(*arguments):
        return sim("racks:2x4", "ring", "--uplink", "50Gbit", "--latency", "0s", *arguments)["seconds"]

    crossing = tmp_path / "hosts"
    crossing.write_text("".join(f"host-{host} slots=1\n" for host in (0, 4, 1, 5, 2, 6, 3, 7)))
    identity = seconds()
    assert seconds("--rank-map", "identity") == identity
    assert seconds("--rank-map", crossing) == close(4 * identity)
    assert seconds("--rank-map", "random:1") == seconds("--rank-map", "random:1")
    assert len({seconds("--rank-map", f"random:{seed}") for seed in range(5)}) > 1
    assert seconds("--rank-map", "best") == close(identity)


def test_a_map_of_gleaner_ranks_is_read(tmp_path):
    best = run("--topology", "bigraph:4x16", "--algorithm", "hdrm", "--bytes", "1MiB", "-o", "json", command="ranks")
    assert best.returncode == 0, best.stderr
    (tmp_path / "map.json").write_text(best.stdout)
    by_file = sim("bigraph:4x16", "halving-doubling", "--rank-map", tmp_path / "map.json")
    assert by_file["seconds"] == sim("bigraph:4x16", "hdrm")["seconds"]
    assert by_file["seconds"] < sim("bigraph:4x16", "halving-doubling")["seconds"]


def test_background_and_failures():
    quiet = sim("star:5", "ring", "--ranks", 4, "--latency", "0s")["seconds"]
    busy = sim("star:5", "ring", "--ranks", 4, "--latency", "0s", "--background", "host-4:host-2:40Gbit")["seconds"]
    assert busy == close(quiet / 0.6)
    failing = ["--fail", "pod-0-edge-0:pod-0-aggregation-0@1ms"]
    assert sim("fat-tree:4", "halving-doubling", *failing)["seconds"] > 0
    result = run("--topology", "star:4", "--algorithm", "ring", "--bytes", "64MiB", "--fail", "host-2:switch-0@1ms")
    assert result.returncode == 1
    assert "no path leads from host" in result.stderr and "'host-2'" in result.stderr


def test_a_seed_gives_one_result():
    arguments = ["--topology", "fat-tree:4", "--algorithm", "halving-doubling", "--bytes", "1MiB", "-o", "json"]
    results = [run(*arguments, "--seed", seed) for seed in (5, 5, 6, 7)]
    assert results[0].returncode == 0 and results[0].stdout == results[1].stdout
    assert len({result.stdout for result in results}) > 1


def sweep(size, *arguments):
    """Returns the seconds for 64 and 256 ranks, by topology and algorithm."""
    arguments = ["--topology", "bigraph,fat-tree", "--algorithm", "ring,halving-doubling,hdrm", *arguments]
    lines = answer(*arguments, "--bytes", size, "--latency", "2us", "--sweep", "64,256")["sweep"]
    assert len(lines) == 5
    return {(line["topology"], line["algorithm"]): [point["seconds"] for point in line["points"]] for line in lines}


def test_small_vectors_as_in_eflops():
    """EFLOPS Fig. 16a: with 256 KiB, HDRM on a BiGraph grows least, and a ring is slowest."""
    lines = sweep("256KiB", "--rank-map", "random:1")
    growth = {name: points[-1] - points[0] for name, points in lines.items()}
    assert min(growth, key=growth.get) == ("bigraph", "hdrm")
    for topology in "bigraph", "fat-tree":
        assert lines[topology, "ring"][-1] > lines[topology, "halving-doubling"][-1]
    for algorithm in "ring", "halving-doubling":
        assert lines["bigraph", algorithm][-1] < lines["fat-tree", algorithm][-1]


def test_large_vectors_as_in_eflops():
    """EFLOPS Fig. 16b: with 256 MiB, HDRM on a BiGraph is fastest, and halving-doubling without a rank map slowest."""
    last = {name: points[-1] for name, points in sweep("256MiB").items()}
    assert min(last, key=last.get) == ("bigraph", "hdrm")
    assert last["fat-tree", "ring"] < last["fat-tree", "halving-doubling"]
    assert last["bigraph", "halving-doubling"] < last["fat-tree", "halving-doubling"]


def test_a_sweep_is_drawn(tmp_path):
    plot = tmp_path / "plot.svg"
    arguments = ["--topology", "star,racks:2x4", "--algorithm", "ring", "--bytes", "1MiB", "--sweep", ""]
    result = run(*arguments[:-1], "6,8", "--plot", plot)
    assert result.returncode == 2 and "6 ranks are no whole number of racks with 4 hosts" in result.stderr
    assert not plot.exists()
    result = run(*arguments[:-1], "8,16", "--plot", plot)
    assert result.returncode == 0, result.stderr
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["ranks", "8", "16"]
    root = ElementTree.parse(plot).getroot()
    lines = root.findall("{http://www.w3.org/2000/svg}polyline")
    assert [len(line.get("points").split()) for line in lines] == [2, 2]
    assert run(*arguments[:-1], "8,16", "-o", "svg").stdout == plot.read_text()


def test_a_sweep_has_several_topologies_of_a_family():
    options = ["--algorithm", "halving-doubling", "--bytes", "1MiB", "--uplink", "10Gbit", "--latency", "0s"]
    lines = answer("--topology", "racks:Rx4,fat-tree,racks:Rx8", *options, "--sweep", "16,32")["sweep"]
    assert [line["topology"] for line in lines] == ["racks:Rx4", "fat-tree", "racks:Rx8"]
    for line, hosts in (lines[0], 4), (lines[2], 8):
        alone = [answer("--topology", f"racks:{size // hosts}x{hosts}", *options)["seconds"] for size in (16, 32)]
        assert [point["seconds"] for point in line["points"]] == alone
    assert lines[0]["points"] != lines[2]["points"]


def test_a_run_that_needs_too_much_memory_is_refused():
    """The messages of a million partitions would take 60 TB."""
    cut = ["--bytes", "4GiB", "--partition-bytes", "4KiB"]
    result = run("--topology", "star:1000", "--algorithm", "ring", *cut)
    assert result.returncode == 2
    assert "partitions of 1000 workers has 2095054848000 messages and needs about " in result.stderr
    assert " of memory; this machine has " in result.stderr
    assert result.stderr.strip().endswith("left. Give a larger --partition-bytes")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--topology", "star:4", "--algorithm", "ring"], "--bytes"),
        (["--topology", "star:4", "--algorithm", "rng", "--bytes", "1MiB"], "'rng' is unknown; expected one of ring"),
        (["--topology", "star:4", "--algorithm", "ring", "--bytes", "much"], "--bytes"),
        (["--topology", "star:4", "--algorithm", "ring", "--bytes", "1MiB", "--ranks", "5"], "--ranks is 5"),
        (["--topology", "star:4", "--algorithm", "ring", "--bytes", "1MiB", "--summers", "1"], "--algorithm summers"),
        (["--topology", "star:4", "--algorithm", "summers", "--bytes", "1MiB", "--summers", "4"], "--summers is 4"),
        (["--topology", "star:4", "--algorithm", "hdrm", "--bytes", "1MiB"], "--algorithm hdrm"),
        (["--topology", "star:4", "--algorithm", "racks", "--stages", "3,2", "--bytes", "1MiB"], "--algorithm racks: "),
        (["--topology", "star:4", "--algorithm", "ring", "--bytes", "1MiB", "--rank-map", "random:x"], "random:SEED"),
        (["--topology", "star:4", "--algorithm", "ring", "--bytes", "1MiB", "--plot", "x.svg"], "--plot needs --sweep"),
        (["--topology", "star:4", "--algorithm", "ring,bcube", "--bytes", "1MiB"], "need --sweep"),
        (["--topology", "star", "--algorithm", "ring", "--bytes", "1MiB", "--sweep", "8,4"], "ascending"),
        (["--topology", "ring", "--algorithm", "ring", "--bytes", "1MiB", "--sweep", "4,8"], "names no family"),
        (["--topology", "star,star", "--algorithm", "ring", "--bytes", "1MiB", "--sweep", "4"], "'star' twice"),
        (["--topology", "star", "--algorithm", "summers", "--bytes", "1MiB", "--sweep", "4"], "--algorithm summers"),
    ],
)
def test_wrong_flags_are_named(arguments, message):
    result = run(*arguments)
    assert result.returncode == 2
    assert message in result.stderr and result.stdout == ""


@pytest.mark.parametrize(
    ("flag", "value", "message"),
    [
        ("--background", "host-0:host-1", "RATE"),
        ("--background", "host-0:host-9:1Gbit", "expected two hosts or switches"),
        ("--background", "host-0:switch-0:1Gbit", "two different hosts"),
        ("--background", "host-0:host-1:fast", "--background"),
        ("--fail", "host-0:switch-0", "A:B@TIME"),
        ("--fail", "host-0:host-1@1ms", "no link joins these two"),
        ("--fail", "host-0:switch-0@soon", "not a duration"),
    ],
)
def test_wrong_conditions_are_named(flag, value, message):
    result = run("--topology", "star:4", "--algorithm", "ring", "--bytes", "1MiB", flag, value)
    assert result.returncode == 2
    assert flag in result.stderr and message in result.stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ("{", "malformed JSON"),
        ('{"ranks": 3}', "expected"),
        ('{"ranks": [{"rank": 7, "host": "host-0"}]}', "rank 7"),
        ("host-0\nhost-9\n", "rank 1 is on host"),
        ("host-0\nhost-1\n", "hosts for 2 ranks, but 4 need one"),
        ("host-0\nhost-1\nhost-0\nhost-2\n", "--rank-map: ranks 0 and 2 are at the same host"),
    ],
)
def test_wrong_rank_maps_are_named(tmp_path, content, message):
    (tmp_path / "map").write_text(content)
    arguments = ["--topology", "star:4", "--algorithm", "ring", "--bytes", "1MiB", "--rank-map", tmp_path / "map"]
    result = run(*arguments)
    assert result.returncode == 2, result.stderr
    assert message in result.stderr
