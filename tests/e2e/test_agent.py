"""Tests that agents see what owners of their machines do, and that each node has the agent for its runtime."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from lab.cluster import Cluster
from lab.pods import pod
from product import SYSTEM, install, wait_until
from test_rig import RECEIVE, SEND, wait_for_pod

LOAD = 200e6  # bits per second
# The nodes have no GPU and no runtime of NVIDIA's, so the class names the runtime that they have.
CLASS = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "nvidia"}, "handler": "runc"}
PRESENT = "nvidia.com/gpu.present"


def used(cluster: Cluster, node: str) -> float:
    return float(cluster.get("nodeprofile", node)["status"].get("usedBitsPerSecond", 0))


def spare(cluster: Cluster, node: str) -> float:
    return float(cluster.get("nodeprofile", node)["status"]["spare"].get("bitsPerSecond", 0))


def test_agents_measure_the_latencies_of_all_pairs(gleaner: Cluster) -> None:
    nodes = {f"n{i}" for i in range(1, 7)}

    def peers(node: str) -> dict[str, int]:
        listed = gleaner.get("nodeprofile", node)["status"].get("peers", [])
        return {peer["node"]: peer["roundTripNanoseconds"] for peer in listed}

    wait_until("each node has a latency to every other", lambda: all(peers(n).keys() == nodes - {n} for n in nodes))
    assert all(0 < latency < 1e9 for node in nodes for latency in peers(node).values())


def test_figures_of_agents_follow_a_load_between_two_nodes(gleaner: Cluster, namespace: str) -> None:
    idle = {node: spare(gleaner, node) for node in ("n1", "n2", "n3")}
    shaped = {"kubernetes.io/egress-bandwidth": f"{LOAD / 1e6:.0f}M"}
    gleaner.apply(pod("receives", ["python3", "-c", RECEIVE], "n2", namespace=namespace))
    wait_for_pod(gleaner, namespace, "receives")
    address = gleaner.get("pod", "receives", namespace)["status"]["podIP"]
    gleaner.apply(pod("sends", ["python3", "-c", SEND, address, "1000"], "n1", shaped, namespace))
    for node in ("n1", "n2"):
        wait_until(f"{node} is used", lambda node=node: 0.8 * LOAD < used(gleaner, node) < 1.2 * LOAD)
        # An agent publishes changes of a tenth of the speed, which is half of the load.
        wait_until(f"{node} spares less", lambda node=node: spare(gleaner, node) < idle[node] - 0.4 * LOAD)
    assert used(gleaner, "n3") < 0.2 * LOAD
    assert spare(gleaner, "n3") > idle["n3"] - 0.2 * LOAD


@pytest.fixture
def runtime_class(gleaner: Cluster) -> Iterator[Cluster]:
    gleaner.apply(CLASS)
    try:
        yield gleaner
    finally:
        gleaner.kubectl("label", "node", "n1", "n2", f"{PRESENT}-")
        install(gleaner)
        gleaner.kubectl("delete", "runtimeclass", "nvidia")


def states(found: dict[str, Any]) -> list[dict[str, str]]:
    return [{"type": each["type"], "status": each["status"]} for each in found["status"].get("conditions", [])]


def ready_agents(cluster: Cluster, node: str) -> list[tuple[str, str]]:
    """Returns the DaemonSet and the runtime class of each agent that is Ready on the node."""
    flags = ("-n", SYSTEM, "-l", "gleaner.dev/component=agent", "--field-selector", f"spec.nodeName={node}")
    return [
        (found["metadata"]["ownerReferences"][0]["name"], found["spec"].get("runtimeClassName", ""))
        for found in json.loads(cluster.kubectl("get", "pods", "-o", "json", *flags))["items"]
        if {"type": "Ready", "status": "True"} in states(found)
    ]


def observed(cluster: Cluster, node: str) -> str:
    return str(cluster.get("nodeprofile", node)["status"]["observedTime"])


def test_only_nodes_with_gpus_have_the_agent_with_the_runtime_class(runtime_class: Cluster) -> None:
    cluster, plain, nvidia = runtime_class, [("gleaner-agent", "")], [("gleaner-agent-nvidia", "nvidia")]
    cluster.kubectl("label", "node", "n1", f"{PRESENT}=true")
    install(cluster, {"agent.nvidia.enabled": "true"})
    wait_until("n1 has NVIDIA's agent", lambda: ready_agents(cluster, "n1") == nvidia)
    wait_until("n2 has the other", lambda: ready_agents(cluster, "n2") == plain)
    owner = cluster.get("nodeprofile", "n2")["metadata"]["ownerReferences"]

    cluster.kubectl("label", "node", "n2", f"{PRESENT}=true")
    wait_until("n2 has NVIDIA's agent", lambda: ready_agents(cluster, "n2") == nvidia)
    before = observed(cluster, "n2")
    wait_until("the next agent writes the profile", lambda: observed(cluster, "n2") != before)
    assert cluster.get("nodeprofile", "n2")["metadata"]["ownerReferences"] == owner
