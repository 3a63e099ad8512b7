"""What a cluster should be: its nodes, their sizes, and the addresses that follow from them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

GATEWAY = "10.200.0.1"  # the lab itself, where the control plane, kube-proxy and DNS are
APISERVER_PORT = 6443
SCHEDULER_EXTENDER = "10.96.0.76"  # ClusterIP that the chart's Service gleaner-scheduler-ext has to ask for
SCHEDULER_EXTENDER_PORT = 7076
MAX_NODES = 200
# Enough for a start of the API server, or a busy machine, not to make nodes look lost.
NODE_GRACE_SECONDS = 12


@dataclass
class NodeSpec:
    """One machine as kubelet sees it; `cpus` and `memory_gib` may exceed what is really there."""

    name: str
    index: int  # from 1
    cpus: int = 8
    memory_gib: int = 16
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return f"10.200.0.{10 + self.index}"

    @property
    def pods(self) -> str:
        return f"10.244.{self.index}.0/24"

    @property
    def link(self) -> str:
        """The lab's end of its cable."""
        return f"node{self.index}"

    @property
    def token(self) -> str:
        return f"token-of-{self.name}"


@dataclass
class ClusterSpec:
    name: str
    nodes: list[NodeSpec]
    # A node counts as lost after this long without a sign of life; its pods are evicted as their tolerations say.
    node_grace_seconds: int = NODE_GRACE_SECONDS
    template: str = ""  # containerd's root with the images in it
    folder: str = ""  # in memory: control plane, configurations, logs
    disk: str = ""  # containers of the nodes; on the template's file system, for hard links

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @staticmethod
    def load(path: Path) -> ClusterSpec:
        read = json.loads(path.read_text())
        return ClusterSpec(**{**read, "nodes": [NodeSpec(**node) for node in read["nodes"]]})
