"""Tests `gleaner plan --topology` against an independent linear program, and `gleaner plan --collective`."""

from __future__ import annotations

import json
import random

import pytest
from scipy.optimize import linprog
from test_plan import plan, run

GBIT = 1_000_000_000


def random_tree(seed):
    """Returns a network of up to four racks below a core, with unequal links, and numbers of workers and summers."""
    dice = random.Random(seed)
    hosts = [{"name": f"h{i}"} for i in range(dice.randint(2, 12))]
    racks = [f"rack{i}" for i in range(dice.randint(1, 4))]
    links = [{"a": rack, "b": "core", "bandwidth": dice.randint(1, 30) * GBIT, "latency_us": 1} for rack in racks]
    links += [
        {"a": host["name"], "b": dice.choice(racks), "bandwidth": dice.randint(1, 10) * GBIT, "latency_us": 1}
        for host in hosts
    ]
    workers = dice.randint(2, len(hosts))
    switches = [{"name": name} for name in ("core", *racks)]
    network = {"hosts": hosts, "switches": switches, "links": links}
    return network, workers, dice.randint(0, len(hosts) - workers)


def behind(network, link):
    """Returns the hosts whose path to the core leads over the link."""
    if link["b"] != "core":
        return {link["a"]}
    return {other["a"] for other in network["links"] if other["b"] == link["a"]}


def least_seconds(network, workers, summers, total):
    """Returns the bound by a linear program over what each member owns, from the bytes that cross each link.

    A worker pushes what another member owns to that member, which sends the result back, so both directions of a link
    carry the same bytes. The vector and 1 Gbit/s are the units.
    """
    names = [host["name"] for host in network["hosts"]][: workers + summers]
    rows = []
    for link in network["links"]:
        inside = behind(network, link)
        row = []
        for owner in names:
            others = [worker for worker in names[:workers] if worker != owner]
            crossing = [worker for worker in others if (worker in inside) != (owner in inside)]
            pushed = [worker for worker in crossing if worker in inside]
            results = [worker for worker in crossing if owner in inside]
            row.append(len(pushed) + len(results))
        rows.append([*row, -link["bandwidth"] / GBIT])
    result = linprog(
        [0] * len(names) + [1],
        A_ub=rows,
        b_ub=[0] * len(rows),
        A_eq=[[1] * len(names) + [0]],
        b_eq=[1],
        bounds=(0, None),
    )
    assert result.success, result.message
    return result.fun * total * 8 / GBIT


@pytest.mark.parametrize("seed", range(25))
def test_the_bound_is_that_of_a_linear_program(tmp_path, seed):
    network, workers, summers = random_tree(seed)
    file = tmp_path / "network.json"
    file.write_text(json.dumps(network))
    found = plan("--topology", file, "--workers", workers, "--summers", summers, "--bytes", "64MiB")
    assert found["bound_seconds"] == pytest.approx(least_seconds(network, workers, summers, 64 << 20), rel=1e-6)
    assert found["seconds"] >= found["bound_seconds"] * (1 - 1e-9)
    assert found["seconds"] <= found["bound_seconds"] * 1.05, "the partitions follow other shares"


def test_the_uplink_that_binds_is_named():
    network = ["--topology", "racks:2x4", "--bandwidth", "10Gbit", "--uplink", "10Gbit"]
    found = plan(*network, "--workers", 8, "--bytes", "64MiB")
    assert found["binding_link"] in [f"the link between rack-{i} and core at 10 Gbit/s" for i in (0, 1)]
    text = run(*network, "--workers", 8, "--bytes", "64MiB", "-o", "explain").stdout
    assert "Limit       the link between rack-" in text
    assert "Uplinks     make the bound 2.29 times as long" in text
    assert "One more    summer has no host left in this network" in text


def test_the_bound_of_all_strategies_is_beside_that_of_summers():
    """Each rack sends what its two halves have in common once, where owners send it for each worker."""
    network = ["--topology", "racks:2x4", "--bandwidth", "10Gbit", "--uplink", "10Gbit", "--workers", 8]
    found = plan(*network, "--bytes", "64MiB")
    assert found["all_strategies_bound_seconds"] == pytest.approx(2 * 7 / 8 * (64 << 20) * 8 / 10e9)
    assert found["bound_seconds"] == pytest.approx(4 * (64 << 20) * 8 / 10e9)
    text = run(*network, "--bytes", "64MiB").stdout
    assert "of the bound of summers, 215 ms" in text
    assert "Strategies  none takes less than 94 ms, by the links of 8 hosts\n" in text
    assert "they are compared below" in text


def test_no_other_strategy_is_suggested_at_one_switch():
    found = plan("--topology", "star:8", "--workers", 8, "--bytes", "64MiB")
    assert found["all_strategies_bound_seconds"] == pytest.approx(found["bound_seconds"])
    assert "compares them" not in run("--topology", "star:8", "--workers", 8, "--bytes", "64MiB").stdout


def test_wide_uplinks_do_not_bind():
    numbers = ["--workers", 8, "--summers", 4, "--bytes", "64MiB"]
    network = plan("--topology", "racks:3x4", "--bandwidth", "10Gbit", *numbers)
    alone = plan("--bandwidth", "10Gbit", *numbers)
    assert network["bound_seconds"] == pytest.approx(alone["bound_seconds"], rel=1e-9)
    assert "binding_link" not in network


@pytest.mark.parametrize(
    ("collective", "seconds", "helps"),
    [  # 8 workers and 4 summers at 8 Gbit/s, 1 GB
        (["reduce-scatter"], 7 / 8, False),
        (["all-gather"], 7 / 8, False),
        (["fsdp"], 14 / (8 + 6 / 8 * 4), True),
        (["fsdp", "--gather-bytes", "3GB"], 22 / 8, True),
        (["fsdp", "--gather-bytes", "0"], 7 / 8, False),
        (["hsdp", "--replicas", 4], 0.6, True),
        (["hsdp", "--replicas", 2], 0.25, False),
        (["hsdp", "--replicas", 1], 0, False),
    ],
    ids=lambda value: "-".join(map(str, value)) if isinstance(value, list) else None,
)
def test_bounds_of_collectives(collective, seconds, helps):
    numbers = ["--workers", 8, "--summers", 4, "--bandwidth", "8Gbit", "--bytes", "1GB"]
    found = plan(*numbers, "--collective", *collective)
    assert found["bound_seconds"] == pytest.approx(seconds)
    assert found["summers_can_help"] is helps
    text = run(*numbers, "--collective", *collective).stdout
    assert ("buy nothing" in text) is not helps


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--collective", "hsdp"], "--replicas R"),
        (["--collective", "hsdp", "--replicas", 3], "3 replicas do not divide 8 workers"),
        (["--collective", "all-gather", "--replicas", 2], "all-gather has no replicas"),
        (["--collective", "reduce-scatter", "--gather-bytes", 2], "reduce-scatter is one operation"),
        (["--replicas", 2], "all-reduce has neither"),
        (["--collective", "fsdp", "--gather-bytes", "many"], "--gather-bytes"),
        (["--collective", "everything"], "--collective"),
        (["--collective", "fsdp", "--topology", "star:8"], "only the bound of all-reduce"),
        (["--topology", "star:4"], "has 4 hosts, and the job 8 workers"),
        (["--topology", "ring:8"], "--topology"),
        (["--uplink", "10Gbit"], "give --topology, too"),
        (["--topology", "star:8", "--worker-bandwidths", "1Gbit"], "give either --topology or lists"),
    ],
    ids=lambda value: "-".join(map(str, value)).replace("--", "") if isinstance(value, list) else None,
)
def test_mistakes(flags, message):
    result = run("--workers", 8, "--bandwidth", "8Gbit", "--bytes", "1GB", *flags)
    assert result.returncode in (1, 2)
    assert message in result.stderr
    assert result.stdout == ""
