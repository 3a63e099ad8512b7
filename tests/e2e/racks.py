"""Divides the nodes of the test cluster into racks, by their labels or by an uplink."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any, Optional

from lab.cluster import Cluster
from product import SYSTEM, wait_until

RACK = "topology.kubernetes.io/rack"
RACKS = {"left": ["n1", "n3", "n5"], "right": ["n2", "n4", "n6"]}


@contextlib.contextmanager
def in_racks(cluster: Cluster) -> Iterator[None]:
    """Has the cluster's Topology show RACKS, until the end of the with-statement."""
    label(cluster, {node: rack for rack, nodes in RACKS.items() for node in nodes})
    wait_until("the Topology has both racks", lambda: groups(cluster) == RACKS)
    try:
        yield
    finally:
        label(cluster, {node: None for nodes in RACKS.values() for node in nodes})
        wait_until("the Topology has no racks", lambda: groups(cluster) == {})


def label(cluster: Cluster, racks: dict[str, Any]) -> None:
    for node, rack in racks.items():
        patch = {"metadata": {"labels": {RACK: rack}}}
        cluster.kubectl("patch", "node", node, "--type=merge", "-p", json.dumps(patch))


def groups(cluster: Cluster, level: str = RACK) -> dict[str, list[str]]:
    status = (cluster.find("topology", "cluster", "") or {}).get("status", {})
    return {group["name"]: group["nodes"] for group in status.get("groups", []) if group["level"] == level}


@contextlib.contextmanager
def in_far_rack(cluster: Cluster, nodes: list[str]) -> Iterator[None]:
    """Puts nodes behind an uplink of 200 Mbit/s and 1 ms each way. Agents begin to measure anew then and afterwards."""
    cluster.ask("rack", "200mbit", "1000", *nodes)
    try:
        forget_measurements(cluster)
        yield
    finally:
        cluster.ask("no-rack")
        forget_measurements(cluster)


def forget_measurements(cluster: Cluster) -> None:
    agents = ("daemonset/gleaner-agent", "-n", SYSTEM)

    def select(value: Optional[str]) -> None:
        patch = {"spec": {"template": {"spec": {"nodeSelector": {"gleaner.test/none": value}}}}}
        cluster.kubectl("patch", *agents, "--type=merge", "-p", json.dumps(patch))

    def running() -> int:
        return int(cluster.get("daemonset", "gleaner-agent", SYSTEM)["status"]["currentNumberScheduled"])

    select("true")
    wait_until("no agent runs", lambda: running() == 0)
    cluster.kubectl("delete", "nodeprofiles", "--all")
    select(None)
    cluster.kubectl("rollout", "status", *agents, "--timeout=300s")


def state_uplinks(cluster: Cluster, uplinks: list[dict[str, str]]) -> None:
    patch = {"spec": {"uplinks": uplinks}}
    cluster.kubectl("patch", "topologies.gleaner.dev", "cluster", "--type=merge", "-p", json.dumps(patch))
