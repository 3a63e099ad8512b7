"""One node: a containerd and a kubelet with their usual paths and ports, in namespaces that simulate a machine."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from . import cgroups
from .machine import write_machine
from .pki import write_kubeconfig
from .processes import HERE, Child, LabError, devices, output_of, wait_until
from .spec import APISERVER_PORT, CABLE_BURST, CABLE_QUEUE, GATEWAY, ClusterSpec, NodeSpec
from .template import PAUSE, SNAPSHOTTER, clone_template, snapshots

NAMESPACES = ["--mount", "--pid", "--net", "--uts", "--ipc"]
DISABLED_PLUGINS = [
    "io.containerd.snapshotter.v1.btrfs",
    "io.containerd.snapshotter.v1.devmapper",
    "io.containerd.snapshotter.v1.zfs",
    "io.containerd.snapshotter.v1.aufs",
    "io.containerd.internal.v1.opt",
    "io.containerd.tracing.processor.v1.otlp",
    "io.containerd.internal.v1.tracing",
]


class Node:
    def __init__(self, cluster: ClusterSpec, spec: NodeSpec, programs: Path, authority: Path) -> None:
        self.spec = spec
        self._cluster = cluster
        self._folder = Path(cluster.folder) / "nodes" / spec.name
        self._disk = Path(cluster.disk) / spec.name
        self._programs = programs
        self._authority = authority
        command = ["unshare", *NAMESPACES, "--fork", "--kill-child", "--mount-proc", "--propagation", "private", "--"]
        command += [str(HERE / "lab" / "node-init"), str(self._folder), str(self._disk)]
        self._child = Child(spec.name, command, self._folder / "init.log")

    @property
    def alive(self) -> bool:
        return self._child.alive

    def write(self) -> None:
        """Writes all files of the node, including its images."""
        (self._folder / "cni").mkdir(parents=True)
        self._disk.mkdir(parents=True)
        clone_template(Path(self._cluster.template), self._disk / "containerd")
        write_machine(self._folder / "machine", self.spec.cpus, self.spec.memory_gib)
        server = f"https://{GATEWAY}:{APISERVER_PORT}"
        write_kubeconfig(self._folder / "kubelet.conf", server, self._authority, self.spec.token)
        labels = ",".join(f"{key}={value}" for key, value in self.spec.labels.items())
        values = {"NODE": self.spec.name, "NODE_ADDRESS": self.spec.address, "GATEWAY": GATEWAY, "LABELS": labels}
        values["TEMPLATE"] = str(snapshots(Path(self._cluster.template) / "root"))
        values["KUBELET"] = str(self._programs / "kubelet")
        values |= {"CABLE_RATE": self.spec.cable_rate, "CABLE_BURST": CABLE_BURST, "CABLE_QUEUE": CABLE_QUEUE}
        (self._folder / "node.env").write_text("".join(f"{name}='{value}'\n" for name, value in values.items()))
        others = [node for node in self._cluster.nodes if node.name != self.spec.name]
        (self._folder / "neighbours").write_text("".join(f"{node.pods} {node.address}\n" for node in others))
        (self._folder / "resolv.conf").write_text("")
        (self._folder / "containerd.toml").write_text(self._containerd_configuration())
        (self._folder / "kubelet.yaml").write_text(json.dumps(self._kubelet_configuration()))
        (self._folder / "cni" / "10-lab.conflist").write_text(json.dumps(self._network_configuration()))

    def on(self) -> None:
        """Starts the node, and connects it to the lab's network."""
        if self.alive:
            raise LabError(f"{self.spec.name} is on already")
        cgroups.make(self._cluster.name, self.spec.name)
        self._child.start()
        first = self._first_process()
        output_of("ip", "link", "add", self.spec.link, "type", "veth", "peer", "name", "eth0", "netns", str(first))
        if self.spec.cable_rate:
            shaper = ["tbf", "rate", self.spec.cable_rate, "burst", CABLE_BURST, "latency", CABLE_QUEUE]
            output_of("tc", "qdisc", "replace", "dev", self.spec.link, "root", *shaper)
        output_of("ip", "link", "set", self.spec.link, "master", "cluster", "up")
        output_of("ip", "route", "replace", self.spec.pods, "via", self.spec.address)

    def off(self) -> None:
        """Simulates a power failure: kills every process of the node, and removes its cgroups. Its disk stays."""
        if not self.alive:
            raise LabError(f"{self.spec.name} is off already")
        self._child.signal(signal.SIGKILL)
        self._child.kill()
        wait_until(lambda: self.spec.link not in devices(), f"the end of {self.spec.name}", 10)
        cgroups.remove(self._cluster.name, self.spec.name)

    def _first_process(self) -> int:
        """Waits until the node's node-init is in its own network namespace. Returns the process id of node-init."""
        children = Path(f"/proc/{self._child.pid}/task/{self._child.pid}/children")
        ours = Path("/proc/self/ns/net").readlink()
        found: list[int] = []

        def apart() -> bool:
            found[:] = [int(pid) for pid in children.read_text().split()]
            return bool(found) and Path(f"/proc/{found[0]}/ns/net").readlink() != ours

        self._child.wait_until(apart, 10)
        return found[0]

    def _containerd_configuration(self) -> str:
        return f"""version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = {json.dumps(DISABLED_PLUGINS)}
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  disable_apparmor = true
  sandbox_image = "{PAUSE}"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "{SNAPSHOTTER}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{self._cluster.folder}/plugins"
    conf_dir = "/etc/cni/net.d"
"""

    def _network_configuration(self) -> dict[str, object]:
        addresses = {"type": "host-local", "subnet": self.spec.pods, "routes": [{"dst": "0.0.0.0/0"}]}
        bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "ipMasq": False, "hairpinMode": True}
        ports = {"type": "portmap", "capabilities": {"portMappings": True}}
        shaping = {"type": "bandwidth", "capabilities": {"bandwidth": True}}
        return {"cniVersion": "0.4.0", "name": "lab", "plugins": [{**bridge, "ipam": addresses}, ports, shaping]}

    def _kubelet_configuration(self) -> dict[str, object]:
        free = "1%"
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "failCgroupV1": False,
            "failSwapOn": False,
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{cgroups.name_of(self._cluster.name)}/{self.spec.name}",
            "enforceNodeAllocatable": ["pods"],
            "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": free, "imagefs.available": free},
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            "localStorageCapacityIsolation": False,
            "resolvConf": str(self._folder / "resolv.conf"),
            "clusterDNS": [GATEWAY],
            "clusterDomain": "cluster.local",
            "nodeLeaseDurationSeconds": max(4, self._cluster.node_grace_seconds * 2 // 3),
            "nodeStatusUpdateFrequency": "5s",
            "nodeStatusReportFrequency": "1m",
            "registryPullQPS": 0,
            "eventRecordQPS": 100,
            "kubeAPIQPS": 100,
            "kubeAPIBurst": 200,
            "syncFrequency": "30s",
            "serializeImagePulls": False,
            "enableProfilingHandler": False,
        }
