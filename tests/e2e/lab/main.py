"""The lab: one process that runs a cluster in Linux namespaces, and executes commands that it gets over a socket.

    python3 -m lab.main FOLDER

FOLDER contains spec.json, and receives all files of the cluster except the nodes' disks. The lab prints `ready` when
all nodes are ready. Then it accepts connections to FOLDER/control, reads one line with a command from each, and answers
with one line of JSON. The cluster ends with this process."""

from __future__ import annotations

import fcntl
import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import services
from .control_plane import SERVICES, ControlPlane, Listen, User
from .far_rack import FarRack
from .node import Node
from .processes import HERE, Child, LabError, binaries, output_of, wait_until
from .spec import APISERVER_PORT, GATEWAY, ClusterSpec

PLUGINS = Path("/usr/lib/cni")
READY_SECONDS = 300.0
# These controllers have no function in the lab, or need a cloud.
WITHOUT_CONTROLLERS = (
    "cloud-node-lifecycle-controller",
    "service-lb-controller",
    "node-route-controller",
    "node-ipam-controller",
    "bootstrap-signer-controller",
    "token-cleaner-controller",
    "persistentvolume-attach-detach-controller",
)


class Lab:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._spec = ClusterSpec.load(folder / "spec.json")
        self._programs = binaries("kube")
        (folder / "plane").mkdir()
        self.plane = ControlPlane(
            users=[User(f"system:node:{node.name}", node.token, ("system:nodes",)) for node in self._spec.nodes],
            controllers=True,
            listen=Listen(GATEWAY, APISERVER_PORT, advertise=GATEWAY),
            apiserver_flags=[
                "--event-ttl=30m",
                "--max-requests-inflight=2000",
                "--max-mutating-requests-inflight=1000",
            ],
            controller_flags=[
                f"--controllers=*,{','.join(f'-{name}' for name in WITHOUT_CONTROLLERS)}",
                "--node-monitor-period=1s",
                f"--node-monitor-grace-period={self._spec.node_grace_seconds}s",
                "--node-startup-grace-period=20s",
            ],
            folder=folder / "plane",
        )
        self.nodes: dict[str, Node] = {}
        self.rack = FarRack(folder / "delay-line.log")
        self._services: list[Child] = []

    def start(self) -> None:
        (self._folder / "network").write_text(str(Path("/proc/self/ns/net").readlink()))
        self._make_network()
        self._link_plugins()
        self.plane.start()
        kubeconfig = self.plane.kubeconfig
        for spec in self._spec.nodes:
            node = Node(self._spec, spec, self._programs, self.plane.dir / "ca.crt")
            node.write()
            node.on()
            self.nodes[spec.name] = node
        self._start(services.scheduler(self._programs, self._folder, kubeconfig))
        dns = self._start(services.dns(self._programs, self._folder, kubeconfig))
        wait_until(self._all_ready, f"{len(self.nodes)} nodes to be Ready (logs: {self._folder})", READY_SECONDS)
        first = self._spec.nodes[0].name
        proxy = self._start(services.proxy(self._programs, self._folder, kubeconfig, first))
        proxy.wait_until(lambda: connects("10.96.0.1", 443), READY_SECONDS)
        dns.wait_until(dns_ready, READY_SECONDS)
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        wait_until(lambda: self.plane.get(account)[0] == 200, "the default service account", READY_SECONDS)

    def obey(self, command: str, *names: str) -> dict[str, Any]:
        of_the_plane = {
            "kill-apiserver": self.plane.kill_apiserver,
            "start-apiserver": self.plane.restart_apiserver,
            "pause-apiserver": self.plane.pause,
            "resume-apiserver": self.plane.resume,
            "compact": self.plane.compact,
        }
        if command == "status" and not names:
            return self._status()
        if command in of_the_plane and not names:
            of_the_plane[command]()
        elif command in ("node-off", "node-on") and names:
            for node in self._named(names):
                node.off() if command == "node-off" else node.on()
        elif command == "rack" and len(names) > 2:
            rate, delay_us, *nodes = names
            self.rack.build([node.spec.link for node in self._named(nodes)], rate, int(delay_us))
        elif command == "no-rack" and not names:
            self.rack.remove()
        else:
            raise LabError(f"unknown command {command!r} {' '.join(names)}")
        return {}

    def _named(self, names: Sequence[str]) -> list[Node]:
        for name in names:
            if name not in self.nodes:
                raise LabError(f"expected one of the nodes {', '.join(self.nodes)}; got {name!r}")
        return [self.nodes[name] for name in names]

    def _status(self) -> dict[str, Any]:
        nodes = {name: "on" if node.alive else "off" for name, node in self.nodes.items()}
        children = {child.name: child.pid for child in self._services if child.alive}
        return {"nodes": nodes, "pids": {**self.plane.pids, **children}}

    def _start(self, child: Child) -> Child:
        child.start()
        self._services.append(child)
        return child

    def _make_network(self) -> None:
        output_of("ip", "link", "set", "lo", "up")
        output_of("ip", "link", "add", "cluster", "type", "bridge")
        output_of("ip", "addr", "add", f"{GATEWAY}/24", "dev", "cluster")
        output_of("ip", "link", "set", "cluster", "up")
        # The kernel looks up a route for the lab's own packets before kube-proxy's rules rewrite their destination.
        # So Services need a route, and any route is sufficient.
        output_of("ip", "route", "add", SERVICES, "dev", "cluster")
        for setting in ("ip_forward=1", "conf.all.send_redirects=0", "conf.cluster.send_redirects=0"):
            output_of("sysctl", "-qw", f"net.ipv4.{setting}")
        # kube-proxy needs to see only routed packets, and no packets that merely cross the bridge.
        if Path("/proc/sys/net/bridge").is_dir():
            output_of("sysctl", "-qw", "net.bridge.bridge-nf-call-iptables=0")

    def _link_plugins(self) -> None:
        if not PLUGINS.is_dir():
            raise LabError(f"{PLUGINS} is missing: scripts/bootstrap e2e installs containernetworking-plugins")
        (self._folder / "plugins").mkdir()
        for plugin in PLUGINS.iterdir():
            ours = HERE / "lab" / f"cni-{plugin.name}"
            (self._folder / "plugins" / plugin.name).symlink_to(ours if ours.exists() else plugin)

    def _all_ready(self) -> bool:
        status, body = self.plane.get("/api/v1/nodes?resourceVersion=0")
        if status != 200:
            return False
        conditions = [item["status"].get("conditions", []) for item in json.loads(body)["items"]]
        ready = [each for each in conditions if any(is_ready(condition) for condition in each)]
        return len(ready) == len(self.nodes)


def is_ready(condition: dict[str, str]) -> bool:
    return condition["type"] == "Ready" and condition["status"] == "True"


def connects(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), timeout=0.5).close()
    except OSError:
        return False
    return True


def dns_ready() -> bool:
    connection = http.client.HTTPConnection(GATEWAY, 8181, timeout=1)
    try:
        connection.request("GET", "/ready")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def serve(lab: Lab, listener: socket.socket) -> None:
    """Serves connections in this thread, one after the other, forever. Processes of commands end with this thread."""
    while True:
        connection, _ = listener.accept()
        with connection, connection.makefile("rw") as stream:
            connection.settimeout(10)
            try:
                answer = lab.obey(*stream.readline().split())
            except (LabError, OSError, TypeError, ValueError) as error:
                answer = {"error": str(error)}
            try:
                stream.write(json.dumps(answer) + "\n")
                stream.flush()
            except OSError:
                pass  # the client has closed the connection


def main() -> int:
    folder = Path(sys.argv[1])
    lock = os.open(folder / "lab.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    started = time.monotonic()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "control"))
    try:
        lab = Lab(folder)
        lab.start()
    except (LabError, OSError, subprocess.SubprocessError) as error:
        print(f"error {error}", flush=True)
        return 1
    listener.listen()
    print(f"ready {time.monotonic() - started:.1f}", flush=True)
    serve(lab, listener)
    return 0


if __name__ == "__main__":
    sys.exit(main())
