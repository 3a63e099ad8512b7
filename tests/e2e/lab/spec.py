"""The specification of a cluster: its nodes, their sizes, and the addresses derived from them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

GATEWAY = "10.200.0.1"  # the lab itself, with the control plane, kube-proxy and DNS
APISERVER_PORT = 6443
SCHEDULER_EXTENDER = "10.96.0.76"  # ClusterIP that the chart must request for the Service gleaner-scheduler-ext
SCHEDULER_EXTENDER_PORT = 7076
MAX_NODES = 200
# Long enough that nodes do not count as lost while the API server restarts or the machine is busy.
NODE_GRACE_SECONDS = 12
CABLE_BURST = "64k"  # bytes that leave at once after a pause of the cable
CABLE_QUEUE = "30ms"  # the time that a packet waits at most before a cable; the packets behind are dropped


@dataclass
class NodeSpec:
    """One machine as the kubelet sees it. `cpus` and `memory_gib` may exceed what the real machine has."""

    name: str
    index: int  # from 1
    cpus: int = 8
    memory_gib: int = 16
    labels: dict[str, str] = field(default_factory=dict)
    # Rate of its cable in each direction, as tc writes it ("200mbit"); empty: as fast as the machine allows.
    cable_rate: str = ""

    @property
    def address(self) -> str:
        return f"10.200.0.{10 + self.index}"

    @property
    def pods(self) -> str:
        return f"10.244.{self.index}.0/24"

    @property
    def link(self) -> str:
        """The name of the lab's end of the node's veth pair."""
        return f"node{self.index}"

    @property
    def token(self) -> str:
        return f"token-of-{self.name}"


@dataclass
class ClusterSpec:
    name: str
    nodes: list[NodeSpec]
    # Seconds without a heartbeat after which a node counts as lost. Its pods are then evicted as their tolerations say.
    node_grace_seconds: int = NODE_GRACE_SECONDS
    template: str = ""  # containerd's root folder with the images
    folder: str = ""  # folder in memory, for the control plane, configurations and logs
    disk: str = ""  # folder of the nodes' containers; on the file system of the template, for hard links

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @staticmethod
    def load(path: Path) -> ClusterSpec:
        read = json.loads(path.read_text())
        return ClusterSpec(**{**read, "nodes": [NodeSpec(**node) for node in read["nodes"]]})
