"""A cluster whose nodes kwok simulates, under a real control plane, and the operator in it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from lab.control_plane import ControlPlane
from lab.processes import Child, LabError, binaries, free_ports, output_of, wait_until

from . import objects
from .client import Connection, send_all
from .measure import reconciliations

ROOT = Path(__file__).resolve().parents[2]
OPERATOR = Path(os.environ.get("GLEANER_BUILD", ROOT / "build/release")) / "bin/gleaner-operator"
CONNECTIONS = 16


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Fleet:
    """The cluster and its operator. stop() ends all processes."""

    def __init__(self, operator: Path) -> None:
        self._operator = operator
        self._children: list[Child] = []
        self.plane = ControlPlane(
            controllers=True,
            # kwok writes no node leases here, so the controller manager would otherwise declare the nodes lost.
            controller_flags=["--node-monitor-grace-period=3600s"],
            # With WatchList the API server would answer kwok's watches in a way that Debian's etcd 3.4 does not
            # support, and kwok would only list, with growing pauses.
            apiserver_flags=["--feature-gates=WatchList=false"],
        )

    def start(self) -> None:
        programs = binaries("kube", "kwok")
        self.plane.start()
        folder, kubeconfig = self.plane.dir, self.plane.kubeconfig
        scheduler = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 1000, "burst": 2000},
        }
        (folder / "scheduler.yaml").write_text(json.dumps(scheduler))
        (folder / "kwok.yaml").write_text(objects.kwok_configuration())
        self._run(
            "scheduler", str(programs / "kube-scheduler"), f"--config={folder / 'scheduler.yaml'}", "--secure-port=0"
        )
        self._run(
            "kwok",
            str(programs / "kwok"),
            f"--config={folder / 'kwok.yaml'}",
            f"--kubeconfig={kubeconfig}",
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
            "--node-lease-duration-seconds=0",
            "--node-ip=10.255.0.1",
            "--cidr=10.0.0.0/9",
        )
        kubectl = [str(programs / "kubectl"), f"--kubeconfig={kubeconfig}"]
        output_of(*kubectl, "apply", "-f", str(ROOT / "crds"))
        output_of(*kubectl, "wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        output_of(*kubectl, "create", "namespace", "gleaner-system")
        wait_until(
            lambda: self._exists("/api/v1/namespaces/default/serviceaccounts/default"), "the service account", 30
        )

    def start_operator(self) -> None:
        coordinator, metrics, health = free_ports(3)
        self.metrics = f"127.0.0.1:{metrics}"
        child = self._run(
            "operator",
            str(self._operator),
            "--namespace=gleaner-system",
            f"--kubeconfig={self.plane.kubeconfig}",
            f"--listen=127.0.0.1:{coordinator}",
            f"--metrics={self.metrics}",
            f"--health=127.0.0.1:{health}",
            "--pod-ip=10.1.1.1",
            "--summer-image=gleaner:1",
        )
        child.wait_until(lambda: bool(self._reconciliations()), 120)

    @property
    def pids(self) -> dict[str, int]:
        return {**self.plane.pids, **{child.name: child.pid for child in self._children}, "creation": os.getpid()}

    def check(self) -> None:
        for child in self._children:
            if not child.alive:
                raise LabError(f"{child.name} ended: {child.end()}")

    def stop(self, keep: bool) -> None:
        for child in reversed(self._children):
            child.kill()
        if keep:
            say(f"logs: {self.plane.dir}")
        self.plane.stop(keep)

    def _run(self, name: str, *command: str) -> Child:
        child = Child(name, list(command), self.plane.dir / f"{name}.log")
        self._children.append(child)
        child.start()
        return child

    def _exists(self, path: str) -> bool:
        return self.plane.get(path)[0] == 200

    def _reconciliations(self) -> dict[float, float]:
        try:
            return reconciliations(self.metrics)
        except OSError:
            return {}


def fill(fleet: Fleet, nodes: int) -> None:
    say(f"{nodes} nodes, each with a NodeProfile")
    for requests in (objects.nodes(nodes), objects.profiles(nodes), objects.profile_statuses(nodes)):
        send_all(fleet.plane, requests, CONNECTIONS)

    def ready(connection: Connection) -> int:
        return sum(
            any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", []))
            and not node["spec"].get("taints")
            for node in connection.everything("/api/v1/nodes")
        )

    with Connection(fleet.plane) as connection:
        wait_until(lambda: ready(connection) == nodes, f"{nodes} nodes to be ready", 600, pause=1)


def leave(*_: object) -> None:
    raise KeyboardInterrupt
