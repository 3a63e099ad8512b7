"""Tests `gleaner plan`, `gleaner strategies` and `gleaner sim` on networks where several paths lead from host to host.

The bound is compared with an independent linear program over independently found routes."""

from __future__ import annotations

import json
import random
import subprocess
from collections import deque
from pathlib import Path

import pytest
from scipy.optimize import linprog
from test_plan import GLEANER, plan

GBIT = 1_000_000_000
MASK = (1 << 64) - 1


def network_of(hosts, switches, links):
    """Returns the network of these links, each of which is (a, b, Gbit/s)."""
    return {
        "hosts": hosts,
        "switches": switches,
        "links": [{"a": a, "b": b, "bandwidth": gbit * GBIT, "latency_us": 1} for a, b, gbit in links],
    }


def two_spines():
    """Two leaves with four hosts each, and two spines, one of which is slower."""
    hosts = [f"h{i}" for i in range(8)]
    links = [(host, f"leaf{i // 4}", 10) for i, host in enumerate(hosts)]
    links += [(leaf, spine, gbit) for leaf in ("leaf0", "leaf1") for spine, gbit in (("spine0", 20), ("spine1", 10))]
    return network_of(hosts, ["leaf0", "leaf1", "spine0", "spine1"], links)


def bond():
    """Hosts at two joined switches: the first one is at both, and the last one has two links to one of them."""
    hosts = [f"h{i}" for i in range(6)]
    links = [("h0", "left", 10), ("h0", "right", 10), ("h5", "right", 10), ("h5", "right", 10), ("left", "right", 15)]
    links += [(f"h{i}", "left" if i % 2 else "right", 10) for i in range(1, 5)]
    return network_of(hosts, ["left", "right"], links)


def random_mesh(seed):
    """Returns hosts with one or two links to switches that are joined at random, with unequal links."""
    dice = random.Random(seed)
    hosts = [f"h{i}" for i in range(dice.randint(2, 10))]
    switches = [f"s{i}" for i in range(dice.randint(1, 5))]
    links = [(switch, dice.choice(switches[:i])) for i, switch in enumerate(switches) if i > 0]
    links += [tuple(dice.sample(switches, 2)) for _ in range(dice.randint(0, 4)) if len(switches) > 1]
    links += [(host, dice.choice(switches)) for host in hosts for _ in range(dice.choice([1, 1, 2]))]
    dice.shuffle(links)
    return network_of(hosts, switches, [(a, b, dice.randint(1, 20)) for a, b in links])


def regular(spec):
    done = subprocess.run([GLEANER, "topology", spec, "-o", "json", "--bandwidth", "10Gbit"], capture_output=True)
    network = json.loads(done.stdout)
    for link in network["links"]:
        link["bandwidth"] = 10 * GBIT
    return network


def mixed(value):
    """Returns the finalizer of splitmix64, by which flows choose their paths."""
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


class Routes:
    """The shortest paths, one for each pair of hosts, as docs/topology.md describes them."""

    def __init__(self, network):
        names = [entry if isinstance(entry, str) else entry["name"] for entry in network["hosts"] + network["switches"]]
        self.hosts = len(network["hosts"])
        self.neighbours = [[] for _ in names]
        for link, entry in enumerate(network["links"]):
            a, b = names.index(entry["a"]), names.index(entry["b"])
            self.neighbours[a].append((b, 2 * link))
            self.neighbours[b].append((a, 2 * link + 1))

    def distances(self, target):
        found = {target: 0}
        queue = deque([target])
        while queue:
            here = queue.popleft()
            if here != target and here < self.hosts:
                continue  # hosts do not forward
            for node, _ in self.neighbours[here]:
                if node not in found:
                    found[node] = found[here] + 1
                    queue.append(node)
        return found

    def path(self, source, target):
        distances = self.distances(target)
        here, channels = source, []
        while here != target:
            shorter = [
                (node, channel)
                for node, channel in self.neighbours[here]
                if distances.get(node) == distances[here] - 1 and (node == target or node >= self.hosts)
            ]
            flow = (source << 32) | target
            here, channel = shorter[mixed(mixed(flow + 1) ^ (here << 32)) % len(shorter)]
            channels.append(channel)
        return channels


def least_seconds(network, workers, summers, total):
    """Returns the bound by a linear program over what each member owns, from the routes of all messages."""
    routes = Routes(network)
    members = workers + summers
    rows = [[0] * members for _ in range(2 * len(network["links"]))]
    for owner in range(members):
        for worker in range(workers):
            if worker != owner:
                for channel in routes.path(worker, owner) + routes.path(owner, worker):
                    rows[channel][owner] += 1
    rows = [[*row, -network["links"][channel // 2]["bandwidth"] / GBIT] for channel, row in enumerate(rows)]
    result = linprog(
        [0] * members + [1],
        A_ub=rows,
        b_ub=[0] * len(rows),
        A_eq=[[1] * members + [0]],
        b_eq=[1],
        bounds=(0, None),
    )
    assert result.success, result.message
    return result.fun * total * 8 / GBIT


NETWORKS = {
    "two-spines": (two_spines, 8, 0),
    "two-spines-and-summers": (two_spines, 6, 2),
    "bond": (bond, 6, 0),
    "bond-and-summers": (bond, 4, 2),
    "fat-tree": (lambda: regular("fat-tree:4"), 16, 0),
    "bigraph": (lambda: regular("bigraph:2x4"), 8, 0),
}


@pytest.fixture(params=NETWORKS)
def case(request, tmp_path):
    """Returns a network, its file, and numbers of workers and summers."""
    make, workers, summers = NETWORKS[request.param]
    network = make()
    file = tmp_path / "network.json"
    file.write_text(json.dumps(network))
    return network, file, workers, summers


def answer(command, *arguments):
    done = subprocess.run([GLEANER, command, *map(str, arguments), "-o", "json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check_bound(network, file: Path, workers, summers):
    found = plan("--topology", file, "--workers", workers, "--summers", summers, "--bytes", "64MiB")
    assert found["bound_seconds"] == pytest.approx(least_seconds(network, workers, summers, 64 << 20), rel=1e-6)
    assert found["seconds"] >= found["bound_seconds"] * (1 - 1e-9)
    assert found["all_strategies_bound_seconds"] <= found["bound_seconds"] * (1 + 1e-9)
    assert found["seconds"] <= found["bound_seconds"] * 1.05, "the partitions follow other shares"


def test_the_bound_is_that_of_a_linear_program(case):
    check_bound(*case)


@pytest.mark.parametrize("seed", range(25))
def test_the_bound_of_a_random_network_is_that_of_a_linear_program(tmp_path, seed):
    network = random_mesh(seed)
    file = tmp_path / "network.json"
    file.write_text(json.dumps(network))
    workers = random.Random(seed).randint(2, len(network["hosts"]))
    check_bound(network, file, workers, random.Random(seed).randint(0, len(network["hosts"]) - workers))


def test_no_simulated_sum_is_faster_than_the_bound(case):
    _, file, workers, summers = case
    network = ["--topology", file, "--bytes", "64MiB", "--summers", summers]
    bound = plan(*network, "--workers", workers)["bound_seconds"]
    assert answer("sim", *network, "--ranks", workers, "--algorithm", "summers")["seconds"] >= bound * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_no_simulated_time_in_a_random_network_is_below_its_bound(tmp_path, seed):
    network = random_mesh(seed)
    file = tmp_path / "network.json"
    file.write_text(json.dumps(network))
    workers = len(network["hosts"])
    flags = ["--topology", file, "--bytes", "16MiB"]
    found = plan(*flags, "--workers", workers)
    summers, ring = (answer("sim", *flags, "--algorithm", name)["seconds"] for name in ("summers", "ring"))
    assert summers >= found["bound_seconds"] * (1 - 1e-9)
    assert min(summers, ring) >= found["all_strategies_bound_seconds"] * (1 - 1e-9)


def test_strategies_compare_summers_near_the_bound(case):
    _, file, workers, summers = case
    network = ["--topology", file, "--summers", summers]
    bound = plan(*network, "--workers", workers, "--bytes", "64MiB")["bound_seconds"]
    summers_first = answer("strategies", *network, "--sizes", "64MiB")["strategies"][0]
    assert summers_first["strategy"] == "summers"
    assert bound * (1 - 1e-9) <= summers_first["seconds"][0] <= bound * 1.1
