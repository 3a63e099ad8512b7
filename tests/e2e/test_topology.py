"""Tests ranks by the topology of the cluster: nodes in two racks, by their labels."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from digits import LONG, TRAIN, in_epoch, result
from lab.cluster import Cluster
from product import BUILD, SYSTEM, Job, submit, wait_until
from racks import groups, in_far_rack, in_racks, label

WAIT = {"name": "gleaner.test/place"}  # a scheduling gate, by which a test chooses the machine of each worker
ALTERNATING = [0, 2, 1, 3]  # workers of n1 to n4 in the order of ranks

# As users write it for Gloo, without Gleaner's library.
GLOO = """
import os, socket
import torch, torch.distributed as dist

dist.init_process_group("gloo")
ranks = [None] * dist.get_world_size()
dist.all_gather_object(ranks, socket.gethostname())
total = torch.full((1000,), float(dist.get_rank()))
dist.all_reduce(total)
if dist.get_rank() == 0:
    print("hosts by rank:", *ranks, "sum", total[0].item(), flush=True)
dist.destroy_process_group()
"""


@pytest.fixture
def racks(gleaner: Cluster) -> Iterator[Cluster]:
    """The cluster with its nodes in two racks, as its Topology shows them."""
    with in_racks(gleaner):
        yield gleaner


@pytest.fixture
def far_rack(gleaner: Cluster) -> Iterator[Cluster]:
    """The cluster with n4 to n6 behind an uplink, which no label tells, and agents that have measured nothing yet."""
    with in_far_rack(gleaner, ["n4", "n5", "n6"]):
        yield gleaner


def restart_operator(cluster: Cluster) -> None:
    cluster.kubectl("rollout", "restart", "deployment/gleaner-operator", "-n", SYSTEM)
    cluster.kubectl("rollout", "status", "deployment/gleaner-operator", "-n", SYSTEM, "--timeout=300s")


def on_nodes(job: Job, *nodes: str) -> None:
    """Has worker i run on nodes[i]. The job's pods wait at the scheduling gate WAIT."""
    gates = [{"name": WAIT["name"]}]
    wait_until(
        "all pods wait at the test's gate alone",
        lambda: [pod["spec"].get("schedulingGates") for pod in job.pods().values()] == [gates] * len(nodes),
    )
    for index, node in enumerate(nodes):
        patch = [
            {"op": "add", "path": "/spec/nodeSelector", "value": {"kubernetes.io/hostname": node}},
            {"op": "remove", "path": "/spec/schedulingGates"},
        ]
        job.kubectl("patch", "pod", f"{job.name}-worker-{index}", "--type=json", "-p", json.dumps(patch))


def test_unmodified_gloo_has_ranks_by_rack(racks: Cluster, namespace: str) -> None:
    job = submit(racks, namespace, "gloo", ["python3", "-c", GLOO], replicas=4, pod={"schedulingGates": [WAIT]})
    on_nodes(job, "n1", "n2", "n3", "n4")
    job.wait_phase("Succeeded", seconds=LONG)
    hosts = " ".join(f"gloo-worker-{index}" for index in ALTERNATING)
    assert job.log("gloo-worker-0").strip() == f"hosts by rank: {hosts} sum 6.0"
    for rank, index in enumerate(ALTERNATING):
        assert job.pods()[f"gloo-worker-{index}"]["metadata"]["labels"]["gleaner.dev/rank"] == str(rank)


def test_bits_depend_neither_on_the_machines_of_ranks_nor_on_the_operator(
    racks: Cluster, namespace: str, reference: tuple[str, float]
) -> None:
    job = submit(racks, namespace, "mapped", TRAIN, replicas=4, pod={"schedulingGates": [WAIT]})
    on_nodes(job, "n1", "n2", "n3", "n4")
    in_epoch(job, 2)
    spec = job.plan()["spec"]
    workers = [member for member in spec["members"] if member["role"] == "worker"]
    assert [member["name"] for member in workers] == [f"worker-{index}" for index in ALTERNATING]
    assert [member["rank"] for member in workers] == [0, 1, 2, 3]
    assert "ranks follow the 2 groups" in spec["rankMap"]["message"]
    before = job.status()["rankMap"]
    restart_operator(racks)
    job.wait_phase("Succeeded", seconds=LONG)
    assert job.status()["rankMap"] == before
    assert result(job, "mapped-worker-0") == reference


def test_ranks_survive_the_operator_and_labels(racks: Cluster, namespace: str) -> None:
    job = submit(racks, namespace, "kept", ["sleep", "100000"], replicas=4, pod={"schedulingGates": [WAIT]})
    on_nodes(job, "n1", "n2", "n3", "n4")
    job.wait_phase("Running")
    before = job.status()["rankMap"]
    assert before["workers"] == ALTERNATING
    label(racks, {"n2": "left", "n3": "right"})
    restart_operator(racks)
    wait_until("the job tells that machines moved", lambda: job.condition("RanksOutdated").get("status") == "True")
    assert job.status()["rankMap"] == before
    job.delete()


# Times all-reduces of 4 MiB by Gloo, without Gleaner's library, and by Gleaner.
TIMED = """
import json, time, torch, torch.distributed as dist
import gleaner.torch as gln

def usual(all_reduce):
    times = []
    for _ in range(12):
        dist.barrier()
        begin = time.monotonic()
        all_reduce(torch.ones(1 << 20))
        times.append(time.monotonic() - begin)
    return sorted(times)[len(times) // 2]

gln.init()
dist.init_process_group("gloo")
times = {"gloo": usual(dist.all_reduce), "gleaner": usual(lambda tensor: gln.push_pull(tensor, name="t"))}
if dist.get_rank() == 0:
    print(json.dumps(times), flush=True)
dist.destroy_process_group()
"""


def uplinks(cluster: Cluster) -> dict[str, float]:
    """Returns the bandwidths of the uplinks that agents have measured, by group."""
    listed = cluster.get("topology", "cluster", "")["status"]["groups"]
    return {each["name"]: each["uplinkBitsPerSecond"] for each in listed if each["uplinkSource"] == "Probes"}


def test_racks_that_no_label_tells_are_found_by_latencies(far_rack: Cluster, namespace: str) -> None:
    found = [["n1", "n2", "n3"], ["n4", "n5", "n6"]]  # a group may keep the name of an earlier one
    wait_until(
        "agents have found both racks", lambda: sorted(groups(far_rack, "probes").values()) == found, seconds=600
    )
    # Agents that start again read the groups at once, and not only ten minutes after the last time.
    far_rack.kubectl("rollout", "restart", "daemonset/gleaner-agent", "-n", SYSTEM)
    wait_until("bandwidths tell the uplinks", lambda: len(uplinks(far_rack)) == 2, seconds=600)
    assert all(20e6 < bits < 220e6 for bits in uplinks(far_rack).values()), uplinks(far_rack)
    times = {}
    for name, order in (("mapped", "Topology"), ("plain", "Identity")):
        job = submit(far_rack, namespace, name, ["python3", "-c", TIMED], replicas=4, pod={"schedulingGates": [WAIT]},
                     communication={"rankMap": order, "strategy": "Ring"})  # fmt: skip
        on_nodes(job, "n1", "n4", "n2", "n5")
        job.wait_phase("Succeeded", seconds=LONG)
        times[name] = json.loads(job.log(f"{name}-worker-0").splitlines()[-1])
        assert job.status()["rankMap"].get("workers") == (ALTERNATING if name == "mapped" else None)
    # A ring crosses the uplink of each rack once each way in the order of racks, and twice in that of indexes.
    for library in ("gloo", "gleaner"):
        ratio = times["plain"][library] / times["mapped"][library]
        print(f"{library}: an all-reduce takes {ratio:.2f} times as long without the rank map")
    for name, nodes in (("mapped", ["n1", "n2", "n4", "n5"]), ("plain", ["n1", "n4", "n2", "n5"])):
        ratio = times[name]["gleaner"] / simulated_seconds(far_rack, nodes)
        print(f"gleaner, {name}: {ratio:.2f} of the simulator's time")


def simulated_seconds(cluster: Cluster, nodes: list[str]) -> float:
    """Returns the simulated time of the ring of 4 MiB over these nodes, in this order, by the cluster's Topology."""
    network = json.loads(cluster.run(str(BUILD / "bin" / "kubectl-gleaner"), "topology", "-o", "json").stdout)
    network["hosts"] = [{"name": node} for node in nodes]
    ends = {*nodes, *(switch["name"] for switch in network["switches"])}
    network["links"] = [link for link in network["links"] if {link["a"], link["b"]} <= ends]
    ring = ["--algorithm", "ring", "--bytes", "4MiB", "--partition-bytes", "plan", "-o", "json"]
    program = str(BUILD / "bin" / "gleaner")
    done = cluster.run(program, "sim", "--topology", "/dev/stdin", *ring, text=json.dumps(network))
    return float(json.loads(done.stdout)["seconds"])


def test_identity_on_request(racks: Cluster, namespace: str) -> None:
    job = submit(racks, namespace, "plain", ["sh", "-c", "echo rank $RANK of $WORLD_SIZE"], replicas=2,
                 communication={"rankMap": "Identity"})  # fmt: skip
    job.wait_phase("Succeeded", seconds=LONG)
    assert [job.log(f"plain-worker-{i}").strip() for i in range(2)] == ["rank 0 of 2", "rank 1 of 2"]
