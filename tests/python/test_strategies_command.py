"""Tests of `gleaner strategies`."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path

import pytest
from conftest import GLEANER, TIMEOUT
from scipy.optimize import linprog

STAR = ["--topology", "star:8", "--bandwidth", "10Gbit", "--latency", "10us"]


def strategies(*flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(GLEANER), "strategies", *flags], capture_output=True, text=True, timeout=TIMEOUT)


def compared(*flags: str) -> dict:
    done = strategies(*flags, "-o", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_times_are_those_of_the_model() -> None:
    report = compared(*STAR, "--sizes", "1000000,4000000", "--partition-bytes", "1000000")
    by_name = {each["strategy"]: each["seconds"] for each in report["strategies"] if not each["stages"]}
    a, byte = 20e-6, 8 / 10e9
    # Four partitions hide each other's latencies. A frame of 64 bytes is a part of each message.
    assert by_name["ring"][0] == pytest.approx(14 * a + (1.75e6 + 14 * 64) * byte, rel=1e-5)
    assert 7e6 * byte < by_name["ring"][1] < 14 * a + 7e6 * byte
    # A tensor that is planned alone is spread over its owners.
    assert by_name["summers"] == pytest.approx([2 * a + 1.75e6 * byte, 2 * a + 7e6 * byte], rel=1e-5)
    assert by_name["gather"] == pytest.approx([3 * a + 7e6 * byte, 3 * a + 28e6 * byte], rel=2e-3)


def test_partial_sums_of_fp16_are_wide() -> None:
    def seconds(dtype: str) -> dict[str, float]:
        report = compared(*STAR, "--sizes", "64MiB", "--dtype", dtype)
        return {each["strategy"]: each["seconds"][0] for each in report["strategies"] if not each["stages"]}

    fp16, fp32 = seconds("fp16"), seconds("fp32")
    assert fp16["ring"] == pytest.approx(1.5 * fp32["ring"], rel=0.01)
    assert fp16["gather"] == pytest.approx(fp32["gather"], rel=1e-4) and fp16["summers"] == fp32["summers"]


def test_size_and_summers_decide() -> None:
    assert compared(*STAR, "--sizes", "4,256KiB")["fastest"] == ["summers", "summers"]
    two = ["--topology", "star:2", "--bandwidth", "10Gbit", "--latency", "10us"]
    assert compared(*two, "--sizes", "4,64KiB")["fastest"] == ["gather", "gather"]
    shared = compared("--topology", "star:16", "--summers", "8", "--bandwidth", "10Gbit", "--sizes", "64MiB")
    assert shared["fastest"] == ["summers"]


def test_the_table_marks_the_fastest() -> None:
    table = strategies(*STAR, "--sizes", "4").stdout.splitlines()
    assert table[0].split() == ["STRATEGY", "4", "B"]
    assert [line.split()[0] for line in table[1:-1] if "*" in line] == ["summers"]


def random_racks(seed: int) -> tuple[dict, list[list[float]], list[float]]:
    """Returns racks of unequal sizes, links and uplinks as a network, and both bandwidths in Gbit/s by rack."""
    dice = random.Random(seed)
    links = [[float(dice.randint(1, 10)) for _ in range(dice.randint(1, 4))] for _ in range(dice.randint(2, 4))]
    uplinks = [float(dice.randint(1, 12)) for _ in links]
    network: dict = {"hosts": [], "switches": [{"name": "core"}], "links": []}
    for rack, members in enumerate(links):
        network["switches"].append({"name": f"rack{rack}"})
        network["links"].append({"a": f"rack{rack}", "b": "core", "bandwidth": uplinks[rack] * 1e9, "latency_us": 3})
        for slot, bandwidth in enumerate(members):
            name = f"h{rack}-{slot}"
            network["hosts"].append({"name": name})
            network["links"].append({"a": name, "b": f"rack{rack}", "bandwidth": bandwidth * 1e9, "latency_us": 2})
    return network, links, uplinks


def flat_seconds_per_byte(links: list[list[float]], uplinks: list[float]) -> float:
    """Returns the left side of PHub's condition by a linear program over the share x of each worker and the time T.

    Each way worker i carries 1 + (n-2) x_i, and the uplink of a rack with N workers N + (n - 2N) X, of a vector of 1.
    """
    of_rack = [rack for rack, members in enumerate(links) for _ in members]
    n, rows, limits = len(of_rack), [], []
    for i, bandwidth in enumerate(bandwidth for members in links for bandwidth in members):
        rows.append([n - 2 if i == j else 0 for j in range(n)] + [-bandwidth])
        limits.append(-1)
    for rack, bandwidth in enumerate(uplinks):
        inside = len(links[rack])
        rows.append([n - 2 * inside if of_rack[j] == rack else 0 for j in range(n)] + [-bandwidth])
        limits.append(-inside)
    result = linprog([0] * n + [1], A_ub=rows, b_ub=limits, A_eq=[[1] * n + [0]], b_eq=[1], bounds=(0, None))
    assert result.success, result.message
    return result.fun * 8e-9


@pytest.mark.parametrize("seed", range(25))
def test_both_sides_of_the_condition_for_racks(tmp_path: Path, seed: int) -> None:
    network, links, uplinks = random_racks(seed)
    file = tmp_path / "network.json"
    file.write_text(json.dumps(network))
    sizes = [1000, 10**9]
    found = compared("--topology", str(file), "--sizes", ",".join(map(str, sizes)))["racks"]
    assert found["workers"] == [len(members) for members in links]
    flat = flat_seconds_per_byte(links, uplinks)
    assert found["flat_seconds_per_byte"] == pytest.approx(flat, rel=1e-6)
    across = 2 * (len(links) - 1) / len(links)
    loads = []  # of each link, in the bytes that cross it each way
    for members, uplink in zip(links, uplinks):
        masters, *others = sorted(members, reverse=True)
        loads += [(len(others) + across, masters), (across, uplink), *((1, other) for other in others)]
    racks = max(load / bandwidth for load, bandwidth in loads) * 8e-9
    assert found["two_level_seconds_per_byte"] == pytest.approx(racks)
    hosts = sum(map(len, links))
    ring = 2 * (hosts - 1) / hosts / min(*uplinks, *(b for members in links for b in members)) * 8e-9
    assert found["ring_seconds_per_byte"] == pytest.approx(ring)
    within = 4e-6 if max(map(len, links)) > 1 else 0
    latencies = {"flat": 2 * 10e-6, "ring": 2 * (hosts - 1) * 10e-6}
    latencies["two_level"] = 2 * within + 2 * (len(links) - 1) * 10e-6
    assert {name: found[f"{name}_latency_seconds"] for name in latencies} == pytest.approx(latencies)
    assert found["condition_holds"] == (min(flat, ring) > racks) or min(flat, ring) == pytest.approx(racks)


@pytest.mark.parametrize("uplink", ["1Gbit", "5Gbit", "40Gbit"])
def test_racks_pay_if_they_take_less_time(uplink: str) -> None:
    network = ["--topology", "racks:4x4", "--bandwidth", "10Gbit", "--uplink", uplink, "--latency", "5us"]
    found = compared(*network, "--sizes", "4,16KiB,64MiB")
    seconds = {each["strategy"]: each["seconds"] for each in found["strategies"]}
    flat = [min(pair) for pair in zip(seconds["summers"], seconds["ring"])]
    assert found["racks"]["pays"] == [by_racks < other for by_racks, other in zip(seconds["racks"], flat)]


def test_the_table_has_the_condition() -> None:
    flags = ["--topology", "racks:8x2", "--bandwidth", "10Gbit", "--uplink", "2Gbit", "--sizes", "4KiB,64MiB"]
    table = strategies(*flags).stdout
    assert table.count("racks pay") == 1
    assert "PHub's condition holds" in table
    assert "racks pay" not in strategies(*STAR).stdout


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "--topology"),
        (["--topology", "star:4", "--summers", "4"], "--summers: 4 of the 4 hosts"),
        (["--topology", "star:4", "--sizes", "4,x"], "--sizes: "),
    ],
)
def test_bad_flags_are_named(flags: list[str], message: str) -> None:
    done = strategies(*flags)
    assert done.returncode == 2
    assert message in done.stderr
