"""Tests that agents see what owners of their machines do."""

from __future__ import annotations

from lab.cluster import Cluster
from lab.pods import pod
from product import wait_until
from test_rig import RECEIVE, SEND, wait_for_pod

LOAD = 200e6  # bits per second


def used(cluster: Cluster, node: str) -> float:
    return float(cluster.get("nodeprofile", node)["status"].get("usedBitsPerSecond", 0))


def spare(cluster: Cluster, node: str) -> float:
    return float(cluster.get("nodeprofile", node)["status"]["spare"].get("bitsPerSecond", 0))


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
