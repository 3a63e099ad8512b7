"""Tests the transports between pods: shared memory on one node if the chart allows it, otherwise TCP."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from digits import LONG
from lab.cluster import Cluster
from product import BUILD, Job, install, submit, wait_until

# Every node of the lab has its own /run, but all nodes share the machine's /dev/shm.
SHARED = {"transports.sharedMemory.enabled": "true", "transports.sharedMemory.hostPath": "/run/shm"}
EXCHANGE = """
import hashlib, time
import gleaner, numpy
gleaner.init()
data = numpy.random.default_rng(gleaner.rank()).standard_normal(1_000_000).astype(numpy.float32)
sums = hashlib.sha256()
for step in range(100):
    sums.update(gleaner.push_pull(data * step, name="data").tobytes())
    time.sleep(0.03)
print("sums", sums.hexdigest(), "by", gleaner.transports(), flush=True)
gleaner.shutdown()
"""


@pytest.fixture(scope="module")
def sharing(gleaner: Cluster) -> Iterator[Cluster]:
    install(gleaner, SHARED)
    yield gleaner
    install(gleaner)


def exchange(cluster: Cluster, namespace: str, name: str, transport: str) -> Job:
    """Submits a job of three workers on two nodes, so that two workers share a node."""
    among = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n5", "n6"]}]}
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"gleaner.dev/job": name}},
    }
    spec = {
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [among]}}
        },
        "topologySpreadConstraints": [spread],
    }
    communication = {"transport": transport, "summers": {"min": 0, "max": 0}}
    return submit(cluster, namespace, name, ["python3", "-c", EXCHANGE], 3, communication, pod=spec)


def told(job: Job, index: int) -> tuple[str, str]:
    log = job.log(f"{job.name}-worker-{index}")
    found = re.search(r"sums ([0-9a-f]{64}) by (.*)", log)
    assert found, log
    return found[1], found[2]


def test_workers_of_one_node_exchange_through_its_memory(sharing: Cluster, namespace: str) -> None:
    job = exchange(sharing, namespace, "best", "Auto")
    job.wait_phase("Running")
    nodes = [job.pods()[f"best-worker-{index}"]["spec"]["nodeName"] for index in range(3)]
    assert sorted(map(nodes.count, nodes)) == [1, 2, 2]
    explain = [str(BUILD / "bin" / "gleaner"), "explain", "best", "-n", namespace]
    wait_until("the plan has tensors", lambda: sharing.run(*explain, check=False).returncode == 0)
    explained = sharing.run(*explain).stdout
    assert "shm" in explained and "tcp" in explained, explained
    job.wait_phase("Succeeded", seconds=LONG)
    plain = exchange(sharing, namespace, "plain", "TCP")
    plain.wait_phase("Succeeded", seconds=LONG)
    for index in range(3):
        by = {other: "inproc" if other == index else "shm" for other in range(3) if nodes[other] == nodes[index]}
        parts = dict(part.split(": ") for part in told(job, index)[1].split("; "))
        used = {int(name.split("/")[1]): kind for kind, names in parts.items() for name in names.split(", ")}
        assert used == {other: by.get(other, "tcp") for other in range(3)}
        assert told(plain, index)[1].count("tcp: worker/") == 1 and "shm" not in told(plain, index)[1]
        assert told(job, index)[0] == told(plain, index)[0] == told(job, 0)[0]
