"""Tests the DaemonSets of agents: each node has one agent, and only nodes with GPUs need NVIDIA's runtime class."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from charts.gleaner_chart import CHART, EVERYTHING, NAMESPACE, Plane, flags_of, one, rendered

NVIDIA = {"agent.nvidia.enabled": "true"}
PRESENT = "nvidia.com/gpu.present"


def matches(expression: dict[str, Any], labels: dict[str, str]) -> bool:
    """Returns whether a node with these labels satisfies a node selector requirement, as Kubernetes defines it."""
    holds = labels.get(expression["key"]) in expression["values"]
    return {"In": holds, "NotIn": not holds}[expression["operator"]]


def admits(daemon_set: dict[str, Any], labels: dict[str, str]) -> bool:
    affinity = daemon_set["spec"]["template"]["spec"].get("affinity")
    if affinity is None:
        return True
    terms = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return any(all(matches(wanted, labels) for wanted in term["matchExpressions"]) for term in terms)


def daemon_sets(values: dict[str, str]) -> list[dict[str, Any]]:
    return [thing for thing in rendered(values) if thing["kind"] == "DaemonSet"]


@pytest.mark.parametrize("labels", [{}, {PRESENT: "true"}, {PRESENT: "false"}, {"gpu": "yes"}], ids=str)
@pytest.mark.parametrize(
    "values",
    [{}, NVIDIA, {**NVIDIA, "agent.nvidia.runtimeClassName": ""}, {**NVIDIA, "agent.nvidia.nodeLabel": "gpu=yes"}],
    ids=["default", "nvidia", "default-runtime", "label"],
)
def test_every_node_has_one_agent(values: dict[str, str], labels: dict[str, str]) -> None:
    assert len([found for found in daemon_sets(values) if admits(found, labels)]) == 1


def test_only_nodes_with_gpus_need_the_runtime_class() -> None:
    for values, labels in (
        (NVIDIA, {PRESENT: "true"}),
        ({**NVIDIA, "agent.nvidia.nodeLabel": "gpu=yes"}, {"gpu": "yes"}),
    ):
        for found in daemon_sets(values):
            name = found["spec"]["template"]["spec"].get("runtimeClassName")
            assert name == ("nvidia" if admits(found, labels) else None), found["metadata"]["name"]


@pytest.mark.parametrize(
    "values", [{}, {**NVIDIA, "agent.nvidia.runtimeClassName": ""}], ids=["default", "default-runtime"]
)
def test_one_daemon_set_is_enough_without_a_runtime_class(values: dict[str, str]) -> None:
    assert [found["metadata"]["name"] for found in daemon_sets(values)] == ["gleaner-agent"]


def test_both_daemon_sets_run_the_same_agent() -> None:
    others, gpus = (found["spec"]["template"]["spec"] for found in daemon_sets(EVERYTHING))
    for part in set(others) | set(gpus) - {"affinity", "runtimeClassName"}:
        assert part == "affinity" or others[part] == gpus[part], part


def test_no_daemon_set_selects_pods_of_the_other() -> None:
    """Checks that the first has the selector that it always had, too: Kubernetes refuses to change it."""
    others, gpus = daemon_sets(EVERYTHING)
    assert others["spec"]["selector"] == one(rendered(), "DaemonSet", "gleaner-agent")["spec"]["selector"]
    for selecting, other in ((others, gpus), (gpus, others)):
        wanted = selecting["spec"]["selector"]["matchLabels"].items()
        assert wanted <= selecting["spec"]["template"]["metadata"]["labels"].items()
        assert not wanted <= other["spec"]["template"]["metadata"]["labels"].items()


def test_the_monitor_scrapes_agents_of_both_daemon_sets() -> None:
    selector = one(rendered(EVERYTHING), "PodMonitor", "gleaner-agent")["spec"]["selector"]
    for found in daemon_sets(EVERYTHING):
        labels = found["spec"]["template"]["metadata"]["labels"]
        assert selector["matchLabels"].items() <= labels.items()
        assert all(matches(expression, labels) for expression in selector["matchExpressions"])


def node(name: str, labels: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


@pytest.fixture
def nodes(plane: Plane) -> Iterator[Plane]:
    """Makes two nodes, one of them with a GPU, and the runtime class. No kubelet runs their pods."""
    runtime_class = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "nvidia"}}
    made = [{**runtime_class, "handler": "nvidia"}, node("cpu", {}), node("gpu", {PRESENT: "true"})]
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": made})
    plane.must("create", "-f", "-", text=listed)
    try:
        yield plane
    finally:
        plane.helm("uninstall", "gleaner", "--ignore-not-found")
        plane.kubectl("delete", "pods", "--all", "-n", NAMESPACE, "--force", "--wait=false")
        plane.must("delete", "-f", "-", text=listed)
        plane.kubectl("delete", "crd", "-l", "app.kubernetes.io/part-of=gleaner", "--wait")
        plane.kubectl("delete", "secret", "gleaner-operator", "-n", NAMESPACE, "--ignore-not-found")


def node_of(pod: dict[str, Any]) -> str:
    """Returns the node that the DaemonSet controller made the pod for."""
    affinity = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    [name] = affinity["nodeSelectorTerms"][0]["matchFields"][0]["values"]
    return name


def agents(plane: Plane) -> dict[str, list[str]]:
    """Returns the DaemonSets that have an agent on each node.

    Binds new pods to nodes and removes deleted pods, in place of the scheduler and the kubelets, which are absent.
    """
    found: dict[str, list[str]] = {}
    for pod in plane.get("pods", "-n", NAMESPACE, "-l", "gleaner.dev/component=agent")["items"]:
        name = pod["metadata"]["name"]
        if "deletionTimestamp" in pod["metadata"]:
            plane.kubectl("delete", "pod", name, "-n", NAMESPACE, "--force", "--wait=false")
            continue
        found.setdefault(node_of(pod), []).append(pod["metadata"]["ownerReferences"][0]["name"])
        if "nodeName" not in pod["spec"]:
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "namespace": NAMESPACE}}
            text = json.dumps({**binding, "target": {"kind": "Node", "name": node_of(pod)}})
            plane.kubectl("create", "-f", "-", text=text)
    return found


def wait_for_agents(plane: Plane, wanted: dict[str, list[str]], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while (found := agents(plane)) != wanted and time.monotonic() < deadline:
        time.sleep(0.3)
    assert found == wanted


def test_a_node_changes_its_agent_with_its_label_and_with_an_upgrade(nodes: Plane) -> None:
    def install(values: dict[str, str]) -> None:
        done = nodes.helm("upgrade", "--install", "gleaner", str(CHART), *flags_of(values))
        assert done.returncode == 0, done.stderr

    install({})
    wait_for_agents(nodes, {"cpu": ["gleaner-agent"], "gpu": ["gleaner-agent"]})
    install(NVIDIA)
    wait_for_agents(nodes, {"cpu": ["gleaner-agent"], "gpu": ["gleaner-agent-nvidia"]})
    nodes.must("label", "node", "cpu", f"{PRESENT}=true")
    wait_for_agents(nodes, {"cpu": ["gleaner-agent-nvidia"], "gpu": ["gleaner-agent-nvidia"]})
    nodes.must("label", "node", "gpu", f"{PRESENT}-")
    wait_for_agents(nodes, {"cpu": ["gleaner-agent-nvidia"], "gpu": ["gleaner-agent"]})
    install({"agent.nvidia.enabled": "false"})
    wait_for_agents(nodes, {"cpu": ["gleaner-agent"], "gpu": ["gleaner-agent"]})
