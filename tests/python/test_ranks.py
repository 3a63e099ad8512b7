"""Tests the command `gleaner ranks`: its maps, checked by an independent count of flows, its outputs and its errors."""

import json
import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2]
BUILD = os.environ.get("GLEANER_BUILD", SOURCE / "build/release")
GLEANER = Path(os.environ.get("GLEANER_BIN_DIR", Path(BUILD) / "bin")) / "gleaner"


def run(*arguments):
    return subprocess.run([GLEANER, "ranks", *map(str, arguments)], capture_output=True, text=True, timeout=240)


def ranks(topology, algorithm, *arguments, bytes="16MiB"):
    result = run("--topology", topology, "--algorithm", algorithm, "--bytes", bytes, *arguments, "-o", "json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def hosts(answer):
    assert [entry["rank"] for entry in answer["ranks"]] == list(range(len(answer["ranks"])))
    names = [entry["host"] for entry in answer["ranks"]]
    assert len(set(names)) == len(names)
    return names


def most_flows_across_a_bigraph(places):
    """Returns the most flows between two switches in a step of halving-doubling.

    A pair must be on different sides, where its path is the one link between both switches.
    """
    most, distance = 0, 1
    while distance < len(places):
        flows = Counter()
        for rank, (side, switch, _) in enumerate(places):
            to_side, to_switch, _ = places[rank ^ distance]
            assert side != to_side
            flows[side, switch, to_switch] += 1
        most = max(most, *flows.values())
        distance *= 2
    return most


@pytest.mark.parametrize(("spec", "count"), [("bigraph:4x16", 64), ("bigraph:2x8", 16), ("bigraph:1x2", 2)])
def test_hdrm_has_one_flow_on_each_link(spec, count):
    answer = ranks(spec, "hdrm")
    assert answer["algorithm"] == "hdrm" and answer["conflicts"] == 0
    assert len(hosts(answer)) == count
    assert most_flows_across_a_bigraph([entry["place"] for entry in answer["ranks"]]) == 1
    assert answer["seconds"] <= answer["identity_seconds"]


def test_hdrm_beats_the_order_of_hosts():
    answer = ranks("bigraph:4x16", "hdrm")
    assert answer["identity_conflicts"] > 0
    assert answer["seconds"] < 0.75 * answer["identity_seconds"]


def test_search_falls_back_from_hdrm_and_says_so():
    result = run("--topology", "racks:2x3", "--algorithm", "hdrm", "--bytes", "1MiB", "-o", "json")
    assert result.returncode == 0
    assert "HDRM needs a BiGraph" in result.stderr and "by annealing instead" in result.stderr
    assert json.loads(result.stdout)["origin"].endswith("as HDRM does not apply")


def shuffled_racks(tmp_path):
    """Writes 4 racks of 4 hosts, of which host i is in rack i mod 4, below uplinks that carry one host's speed."""
    links = [{"a": f"h{i}", "b": f"rack{i % 4}", "bandwidth": "10Gbit", "latency_us": 2} for i in range(16)]
    links += [{"a": f"rack{r}", "b": "core", "bandwidth": "10Gbit", "latency_us": 10} for r in range(4)]
    topology = {
        "hosts": [{"name": f"h{i}", "place": [i % 4, i // 4]} for i in range(16)],
        "switches": [{"name": name} for name in ("core", "rack0", "rack1", "rack2", "rack3")],
        "links": links,
    }
    path = tmp_path / "racks.json"
    path.write_text(json.dumps(topology))
    return path


def test_ring_passes_through_each_rack_once(tmp_path):
    answer = ranks(shuffled_racks(tmp_path), "ring")
    assert answer["conflicts"] == 0 and answer["identity_conflicts"] > 0
    order = [entry["place"][0] for entry in answer["ranks"]]
    assert sum(a != b for a, b in zip(order, order[1:] + order[:1], strict=True)) == 4
    # 30 steps of 1/16 of 16 MiB at 10 Gbit/s: one flow on each link, or four on each uplink. A chunk goes around twice
    # but for two hops, over 8 hops of 24 µs between racks and 22 of 4 µs.
    chunk = 8 * 2**20 / 1e10
    assert answer["seconds"] == pytest.approx(30 * chunk + 8 * 24e-6 + 22 * 4e-6)
    assert answer["identity_seconds"] == pytest.approx(30 * (4 * chunk + 24e-6))


@pytest.mark.parametrize(
    "algorithm", ["ring", "halving-doubling", "double-tree", "bcube", "blueconnect", "racks", "two-level"]
)
def test_no_algorithm_gets_a_map_worse_than_the_order_of_hosts(algorithm, tmp_path):
    answer = ranks(shuffled_racks(tmp_path), algorithm, "--iterations", 2000)
    assert sorted(hosts(answer)) == sorted(f"h{i}" for i in range(16))
    assert answer["seconds"] <= answer["identity_seconds"]


def test_one_seed_gives_one_map(tmp_path):
    path = shuffled_racks(tmp_path)
    first, again = (hosts(ranks(path, "double-tree", "--seed", 5, "--iterations", 3000)) for _ in range(2))
    assert first == again


def test_fewer_ranks_than_hosts_share_a_rack(tmp_path):
    answer = ranks(shuffled_racks(tmp_path), "ring", "--ranks", 4)
    assert len({entry["place"][0] for entry in answer["ranks"]}) == 1


def test_probes_give_groups(tmp_path):
    """Hosts with the same last digit are near each other."""
    names = [f"vm{i}" for i in range(12)]
    near = [[i % 3 == j % 3 for j in range(12)] for i in range(12)]
    probes = {
        "hosts": names,
        "latency_us": [[0 if i == j else 10 if near[i][j] else 50 for j in range(12)] for i in range(12)],
        "bandwidth": [[0 if i == j else 1e10 if near[i][j] else 4e9 for j in range(12)] for i in range(12)],
    }
    path = tmp_path / "probes.json"
    path.write_text(json.dumps(probes))
    answer = ranks(path, "two-level", "--groups", 3, "--iterations", 2000)
    assert sorted(map(sorted, answer["groups"])) == sorted(sorted(names[r::3]) for r in range(3))
    order = hosts(answer)
    assert {frozenset(order[i : i + 4]) for i in (0, 4, 8)} == {frozenset(names[r::3]) for r in range(3)}
    assert answer["seconds"] < answer["identity_seconds"]
    assert all(entry["place"] == [] for entry in answer["ranks"])


def test_hdrm_needs_no_search_and_takes_thousands_of_hosts():
    answer = ranks("bigraph:32x128", "hdrm")
    assert len(hosts(answer)) == 4096
    assert answer["conflicts"] == 0 < answer["identity_conflicts"]


def test_text_outputs_agree_with_json(tmp_path):
    arguments = ("--topology", shuffled_racks(tmp_path), "--algorithm", "ring", "--bytes", "1MiB")
    text = {output: run(*arguments, "-o", output).stdout for output in ("hostfile", "rankfile", "table", "explain")}
    order = hosts(json.loads(run(*arguments, "-o", "json").stdout))
    assert text["hostfile"] == "".join(f"{host} slots=1\n" for host in order)
    assert text["rankfile"] == "".join(f"rank {rank}={host} slot=*:*\n" for rank, host in enumerate(order))
    assert [line.split()[:2] for line in text["table"].splitlines()[1:]] == [[str(r), h] for r, h in enumerate(order)]
    assert run(*arguments).stdout == text["table"]
    explain = text["explain"]
    assert "ring, 16 ranks on 16 hosts, 1.00 MiB" in explain
    assert "times as fast as rank i on host i" in explain
    assert "Conflicts   none; with rank i on host i 240 (240 between switches), up to 4 flows on a channel" in explain
    assert "0-29" in explain and "rack0 -> core" in explain


def test_one_host_keeps_its_rank():
    answer = ranks("star:1", "ring")
    assert answer["seconds"] == 0 and answer["conflicts"] == 0
    assert answer["ranks"] == [{"rank": 0, "host": "host-0", "place": [0]}]
    assert run("--topology", "star:1", "--algorithm", "hdrm", "--bytes", 1, "-o", "explain").returncode == 0


def test_time_limit_ends_the_search():
    result = run(
        "--topology", "bigraph:4x16", "--algorithm", "ring", "--bytes", "1MiB", "--time-limit", 0.01, "-o", "json"
    )
    assert result.returncode == 0
    assert "--iterations N gives the same map everywhere" in result.stderr
    answer = json.loads(result.stdout)
    assert answer["seconds"] <= answer["identity_seconds"]


GOOD = {"--topology": "racks:2x4", "--algorithm": "ring", "--bytes": "1MiB"}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"--topology": None}, "--topology is required"),
        ({"--algorithm": None}, "--algorithm is required"),
        ({"--bytes": None}, "--bytes is required"),
        ({"--algorithm": "rings"}, "--algorithm"),
        ({"--bytes": "many"}, "--bytes"),
        ({"--topology": "racks:2"}, "--topology"),
        ({"--ranks": 0}, "--ranks"),
        ({"--ranks": 9}, "--ranks is 9, but the topology has 8 hosts; a host has one rank at most"),
        ({"--groups": 0}, "--groups"),
        ({"--groups": 9}, "--groups is 9, but the topology has 8 hosts; a group has one host at least"),
        ({"--groups": 5, "--ranks": 4, "--algorithm": "two-level"}, "--groups is 5, but there are 4 ranks"),
        ({"--iterations": 0}, "--iterations"),
        ({"--time-limit": -1}, "--time-limit"),
        ({"--time-limit": "nan"}, "--time-limit"),
        ({"--seed": "x"}, "--seed"),
        ({"-o": "yaml"}, "--output"),
        ({"--topology": "star:2049"}, "--topology has 2049 hosts; a search for a rank map takes 2048 at most"),
        ({"--topology": "star:2049", "--ranks": 4}, "or on a BiGraph --algorithm hdrm, which needs no search"),
        ({"--topology": "star:2049", "--algorithm": "hdrm"}, "takes 2048 at most, and HDRM does not apply"),
        ({"--topology": "bigraph:32x128", "--algorithm": "hdrm", "--groups": 2}, "--groups takes 2048 at most"),
    ],
)
def test_errors_name_the_flag(changed, message):
    arguments = [word for flag, value in {**GOOD, **changed}.items() if value is not None for word in (flag, value)]
    result = run(*arguments)
    assert result.returncode == 2, result.stderr
    assert message in result.stderr
    assert result.stdout == ""


def test_missing_file_is_named(tmp_path):
    result = run("--topology", tmp_path / "none.json", "--algorithm", "ring", "--bytes", 1)
    assert result.returncode in (1, 2) and "none.json" in result.stderr
