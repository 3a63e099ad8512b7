"""Tests the nodes on which kube-scheduler places summers, with and without the scheduler extender."""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Optional

import pytest
from conftest import BUILD, TIMEOUT, free_address, wait_until
from real_api import Api, real_api

# isort: split
from lab.processes import Child, binaries

EXTENDER = BUILD / "bin" / "gleaner-scheduler-ext"
PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"


class Rig:
    """An API server, kube-scheduler and the extender, with nodes that have no kubelets."""

    def __init__(self, api: Api, folder: Path) -> None:
        self.api = api
        self._folder = folder
        self.address, self._metrics_address = free_address(), free_address()
        self.extender = Child(
            "gleaner-scheduler-ext",
            [
                str(EXTENDER),
                f"--listen={self.address}",
                f"--metrics={self._metrics_address}",
                f"--kubeconfig={api.kubeconfig}",
                "--min-bandwidth=1Gbit",
            ],
            folder / "extender.log",
        )
        self.scheduler = Child(
            "kube-scheduler",
            [str(binaries("kube") / "kube-scheduler"), f"--config={self._write_config()}", "--secure-port=0"],
            folder / "scheduler.log",
        )

    def _write_config(self) -> Path:
        extender = {
            "urlPrefix": f"http://{self.address}",
            "filterVerb": "filter",
            "prioritizeVerb": "prioritize",
            "weight": 10,
            "nodeCacheCapable": True,
            "ignorable": True,
            "httpTimeout": "5s",
            "managedResources": [{"name": "gleaner.dev/summer", "ignoredByScheduler": True}],
        }
        path = self._folder / "scheduler.json"
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(self.api.kubeconfig)},
            "leaderElection": {"leaderElect": False},
            "extenders": [extender],
        }
        path.write_text(json.dumps(config))
        return path

    def start(self) -> None:
        self.extender.start()
        self.extender.wait_until(lambda: self.get("/readyz")[0] == 200, TIMEOUT)
        self.scheduler.start()

    def stop(self) -> None:
        self.scheduler.kill()
        self.extender.kill()

    def get(self, path: str, address: Optional[str] = None) -> tuple[int, str]:
        connection = http.client.HTTPConnection(address or self.address, timeout=5)
        with contextlib.closing(connection):
            try:
                connection.request("GET", path)
                answer = connection.getresponse()
                return answer.status, answer.read().decode()
            except OSError:
                return 0, ""

    def metrics(self) -> str:
        return self.get("/metrics", self._metrics_address)[1]

    def add_node(self, name: str, spare_mbit: Optional[int] = None) -> None:
        """Adds a node. With `spare_mbit` the node gets a profile of 25 Gbit/s with this spare bandwidth."""
        room = {"cpu": "8", "memory": "16Gi", "pods": "110"}
        ready = {"type": "Ready", "status": "True", "reason": "Test", "message": "", "lastHeartbeatTime": now()}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        self._must("POST", "/api/v1/nodes", node)
        status = {
            "status": {"capacity": room, "allocatable": room, "conditions": [{**ready, "lastTransitionTime": now()}]}
        }
        self._must("PATCH", f"/api/v1/nodes/{name}/status", status, MERGE)
        self._must("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": None}}, MERGE)
        if spare_mbit is not None:
            self.add_profile(name, spare_mbit)

    def add_profile(self, name: str, spare_mbit: int) -> None:
        head = {"apiVersion": "gleaner.dev/v1alpha1", "kind": "NodeProfile", "metadata": {"name": name}}
        assert self.api.create(head).ok
        status = {
            # In the future, so that profiles do not become stale on a slow machine. The limit is two minutes.
            "observedTime": now(ahead=90),
            "cpus": "8",
            "memoryBytes": 16 << 30,
            "bitsPerSecond": 25_000_000_000,
            "speedSource": "Sysfs",
            "spare": {"cpus": "6", "memoryBytes": 8 << 30, "bitsPerSecond": spare_mbit * 1_000_000},
        }
        answer = self.api.patch(head, {"status": status}, "/status")
        assert answer.ok, answer.message

    def label_node(self, name: str, labels: dict[str, str]) -> None:
        self._must("PATCH", f"/api/v1/nodes/{name}", {"metadata": {"labels": labels}}, MERGE)

    def add_pod(self, name: str, role: str, job: str = "digits", node: str = "") -> None:
        resources = {"requests": {"cpu": "100m"}}
        if role == "summer":
            resources["requests"]["gleaner.dev/summer"] = "1"
            resources["limits"] = {"gleaner.dev/summer": "1"}
        labels = {"gleaner.dev/job": job, "gleaner.dev/role": role} if role else {}
        spec: dict[str, Any] = {"containers": [{"name": "main", "image": "none:1", "resources": resources}]}
        if node:
            spec["nodeName"] = node
        limit = {"kubernetes.io/egress-bandwidth": "5G", "kubernetes.io/ingress-bandwidth": "5G"}
        metadata = {"name": name, "labels": labels, "annotations": limit if role == "summer" else {}}
        self._must("POST", PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    def node_of(self, pod: str) -> str:
        return wait_until(
            lambda: self.api.ask("GET", f"{PODS}/{pod}").body["spec"].get("nodeName"), TIMEOUT, f"{pod} is bound"
        )

    def why_pending(self, pod: str) -> str:
        def message() -> str:
            status = self.api.ask("GET", f"{PODS}/{pod}").body["status"]
            return next((c["message"] for c in status.get("conditions", []) if c["type"] == "PodScheduled"), "")

        return wait_until(message, TIMEOUT, f"{pod} is refused")

    def _must(self, method: str, path: str, body: Any, kind: str = "application/json") -> None:
        answer = self.api.ask(method, path, body, kind)
        assert answer.ok, answer.message


def now(ahead: float = 0) -> str:
    return (datetime.now(timezone.utc) + timedelta(seconds=ahead)).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.fixture
def rig(kubernetes: None, tmp_path: Path) -> Iterator[Rig]:
    assert EXTENDER.exists(), f"this needs {EXTENDER}; build with scripts/build, or set GLEANER_BUILD"
    with real_api() as api:
        api.install()
        rig = Rig(api, tmp_path)
        try:
            yield rig
        finally:
            rig.stop()


def test_summers_are_placed_on_nodes_with_spare_bandwidth(rig: Rig) -> None:
    for name, spare in (("slow", 100), ("some", 2_000), ("much", 20_000), ("worker", 24_000)):
        rig.add_node(name, spare)
    rig.add_node("unknown")
    rig.add_pod("digits-worker-0", "worker", node="worker")
    rig.start()
    # Creates both summers at once. Summer 1 may go neither to the node of summer 0 nor to the worker's node.
    rig.add_pod("digits-summer-0", "summer")
    rig.add_pod("digits-summer-1", "summer")
    assert {rig.node_of("digits-summer-0"), rig.node_of("digits-summer-1")} == {"much", "some"}
    rig.add_pod("digits-summer-2", "summer")
    why = rig.why_pending("digits-summer-2")
    for reason in (
        "0/5 nodes are available",
        "1 node(s) with spare bandwidth below 1 Gbit/s",
        "2 node(s) with a summer of this job",
        "1 node(s) with a worker of this job",
        "1 node(s) without a report of an agent",
    ):
        assert reason in why
    # A summer of another job may share a node that has enough spare bandwidth left.
    rig.add_pod("other-summer-0", "summer", job="other")
    assert rig.node_of("other-summer-0") in ("much", "worker")
    assert 'gleaner_extender_seconds_count{call="filter"}' in rig.metrics()


def test_the_scheduler_counts_nodes_by_reason(rig: Rig) -> None:
    for i in range(1, 41):
        rig.add_node(f"slow-{i}", 10 * i)
    rig.start()
    rig.add_pod("digits-summer-0", "summer")
    why = rig.why_pending("digits-summer-0")
    assert "0/40 nodes are available: 40 node(s) with spare bandwidth below 1 Gbit/s." in why
    assert len(why) < 300


def test_the_extender_follows_changes_of_the_cluster(rig: Rig) -> None:
    rig.add_node("n1", 100)
    rig.start()
    rig.add_pod("digits-summer-0", "summer")
    assert "spare bandwidth" in rig.why_pending("digits-summer-0")
    rig.add_node("n2", 20_000)
    # kube-scheduler retries a refused pod when a node changes. It does not watch profiles.
    changes = iter(range(10_000))

    def bound_after_a_change() -> str:
        rig.label_node("n2", {"change": str(next(changes))})
        time.sleep(0.5)
        return rig.api.ask("GET", f"{PODS}/digits-summer-0").body["spec"].get("nodeName", "")

    assert wait_until(bound_after_a_change, TIMEOUT, "the summer is bound") == "n2"


def test_kube_scheduler_does_not_call_the_extender_for_other_pods(rig: Rig) -> None:
    rig.add_node("n1", 100)
    rig.start()
    rig.add_pod("web", "")
    rig.add_pod("digits-worker-0", "worker")
    assert rig.node_of("web") == rig.node_of("digits-worker-0") == "n1"
    assert 'gleaner_extender_seconds_count{call="filter"} 0' in rig.metrics()


def test_summers_are_placed_without_the_extender_or_profiles(rig: Rig) -> None:
    rig.add_node("n1")
    rig.start()
    rig.add_pod("digits-summer-0", "summer")
    assert rig.node_of("digits-summer-0") == "n1"  # no profile at all
    rig.extender.kill()
    rig.add_node("n2", 100)
    rig.add_pod("digits-summer-1", "summer")
    assert rig.node_of("digits-summer-1") in ("n1", "n2")


def test_the_extender_ends_on_a_signal(rig: Rig) -> None:
    rig.add_node("n1", 20_000)
    rig.extender.start()
    rig.extender.wait_until(lambda: rig.get("/readyz")[0] == 200, TIMEOUT)
    rig.extender.signal(signal.SIGTERM)
    wait_until(lambda: not rig.extender.alive, what="the extender ends")
    assert "signal=15" in (rig.extender.log).read_text()
