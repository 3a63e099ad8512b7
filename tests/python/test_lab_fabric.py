"""Tests tests/lab/fabric.py: the switches, places and rates of a lab."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import GLEANER, ROOT, require_build

sys.path.insert(0, str(ROOT / "tests" / "lab"))
from fabric import PAYLOAD, Fabric, LabError, make, parse_racks, parse_tiers, place_of, topology_of


def three_tiers() -> Fabric:
    return make([3, 2, 2], ["9mbit"] * 12, ["8mbit"] * 3, ["7mbit", "6mbit"], {"pod1": "5mbit", "worker4": "4mbit"})


def test_hosts_fill_racks_and_racks_fill_pods() -> None:
    made = three_tiers()
    assert made.switches == ["core", "pod0", "pod1", "rack0", "rack1", "rack2", "rack3"]
    assert [made.above[f"worker{i}"] for i in range(12)] == [f"rack{i // 3}" for i in range(12)]
    assert [made.above[f"rack{i}"] for i in range(4)] == ["pod0", "pod0", "pod1", "pod1"]
    assert [made.above[f"summer{j}"] for j in range(3)] == ["rack0", "rack1", "rack2"]


def test_exceptions_replace_rates() -> None:
    rates = three_tiers().rates
    assert [rates[link] for link in ("rack0", "pod0", "pod1")] == ["7mbit", "6mbit", "5mbit"]
    assert [rates[link] for link in ("worker3", "worker4", "summer0")] == ["9mbit", "4mbit", "8mbit"]


def test_places_go_from_pods_to_slots() -> None:
    made = three_tiers()
    assert place_of(made, "worker0") == [0, 0, 0]
    assert place_of(made, "worker11") == [1, 3, 2]
    assert place_of(made, "summer0") == [0, 0, 3]
    assert place_of(make([], ["9mbit"] * 2, [], ["9mbit"], {}), "worker1") == [1]


def test_a_lab_without_racks_is_a_star() -> None:
    made = make([], ["9mbit"], ["none"], ["9mbit"], {})
    assert (made.switches, made.above) == (["core"], {"worker0": "core", "summer0": "core"})


def test_gleaner_reads_the_topology(tmp_path: Path) -> None:
    require_build()
    made = make([4, 2], ["200mbit"] * 8, [], ["50mbit"], {})
    file = tmp_path / "topology.json"
    file.write_text(
        json.dumps(topology_of(made, {link: 50e6 if link in made.uplinks else 200e6 for link in made.above}))
    )
    told = subprocess.run([GLEANER, "topology", file, "-o", "json"], capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    read = json.loads(told.stdout)
    assert [link["bandwidth"] for link in read["links"]] == pytest.approx([200e6 * PAYLOAD] * 8 + [50e6 * PAYLOAD] * 2)
    # A message from one rack to the other takes the uplinks' bandwidth, and a message within a rack the hosts'.
    simulated = subprocess.run(
        [GLEANER, "sim", "--topology", file, "--algorithm", "ring", "--ranks", "8", "--bytes", "8MB", "-o", "json"],
        capture_output=True,
        text=True,
    )
    assert simulated.returncode == 0, simulated.stderr
    assert json.loads(simulated.stdout)["seconds"] == pytest.approx(14 * 8e6 / (50e6 * PAYLOAD), rel=1e-3)


def test_links_without_a_rate_have_no_bandwidth() -> None:
    with pytest.raises(LabError, match="rack1 have no rate"):
        topology_of(make([1, 2], ["9mbit"] * 2, [], ["9mbit"], {}), {"worker0": 1.0, "worker1": 1.0, "rack0": 1.0})


def test_shapes_are_parsed() -> None:
    assert (parse_racks("2x4"), parse_tiers("3,2,2")) == ([4, 2], [3, 2, 2])
    for wrong in ("2", "2x", "x4", "0x4", "2x4x2"):
        with pytest.raises(LabError, match="2x4"):
            parse_racks(wrong)
    for wrong in ("4", "3,2,2,2", "3,,2", "3,0"):
        with pytest.raises(LabError, match="3,2,2"):
            parse_tiers(wrong)
