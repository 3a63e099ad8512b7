"""Tests gleaner-agent and its admission policy with a real API server: the agent's writes, and the refused ones.

The machine is a folder of this test's, so that its counters can be moved; processors and API server are real. Run by
ctest with GLEANER_BIN_DIR; skipped, with the reason, where there can be no API server.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from lab.control_plane import ControlPlane  # noqa: E402
from lab.processes import LabError, binaries, free_ports  # noqa: E402

AGENT = Path(os.environ.get("GLEANER_BIN_DIR", ROOT / "build" / "release" / "bin")) / "gleaner-agent"
NAMESPACE = "gleaner-system"
SUMMER = "gleaner.dev/summer"


def eventually(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    """The first true value of `condition`."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.2)


class Cluster:
    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane = plane
        self.folder = folder
        self.program = str(binaries("kube") / "kubectl")

    def kubectl(self, *arguments: str, text: str = "", token: str = "", check: bool = True) -> str:
        """Standard output; with check=False also what went wrong."""
        identity = ["--kubeconfig", str(self.plane.kubeconfig)]
        if token:
            server = ["--server", self.plane.server, "--certificate-authority", str(self.plane.dir / "ca.crt")]
            identity = ["--kubeconfig", "/dev/null", *server, "--token", token]
        done = subprocess.run(
            [self.program, *identity, *arguments], input=text, capture_output=True, text=True, timeout=60
        )
        if check:
            assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
            return done.stdout
        return done.stdout if done.returncode == 0 else f"failed: {done.stderr}"

    def get(self, *what: str) -> dict[str, Any]:
        text = self.kubectl("get", *what, "-o", "json", check=False)
        return {} if text.startswith("failed") else json.loads(text)

    def apply(self, *objects: dict[str, Any]) -> None:
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl("apply", "-f", "-", text=json.dumps(listed))

    def token(self, node: str) -> str:
        """As the agent's pod on that node gets it; of no pod for an empty node."""
        bound = ["--bound-object-kind", "Pod", "--bound-object-name", f"agent-{node}"] if node else []
        return self.kubectl("create", "token", "gleaner-agent", "-n", NAMESPACE, *bound).strip()

    def kubeconfig(self, name: str, token: str) -> Path:
        path = self.folder / f"{name}.conf"
        cluster = {"server": self.plane.server, "certificate-authority": str(self.plane.dir / "ca.crt")}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": token}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        path.write_text(json.dumps(config))
        return path


def make_node(cluster: Cluster, name: str) -> None:
    cluster.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"zone": "z1"}}})
    amounts = {"cpu": "2", "memory": "4Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    status = {"status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}}
    cluster.kubectl("patch", "node", name, "--subresource=status", "--type=merge", "-p", json.dumps(status))
    make_pod(cluster, NAMESPACE, f"agent-{name}", name, "10m", serviceAccountName="gleaner-agent")


def make_pod(cluster: Cluster, namespace: str, name: str, node: str, cpus: str, **spec: Any) -> None:
    container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": cpus, "memory": "64Mi"}}}
    spec = {"nodeName": node, "containers": [container], **spec}
    meta = {"name": name, "namespace": namespace}
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})


def agent_role() -> str:
    """The chart's role, whose rules have nothing that Helm fills in."""
    text = (ROOT / "charts" / "gleaner" / "templates" / "agent.yaml").read_text()
    rules = re.search(r"^kind: ClusterRole\n.*?^(rules:\n.*?)^---", text, re.MULTILINE | re.DOTALL)
    assert rules
    return (
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: gleaner-agent}\n"
        + rules.group(1)
    )


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    try:
        plane = ControlPlane()
        plane.start()
    except LabError as error:
        plane.stop()
        pytest.skip(f"no API server: {error}")
    try:
        made = Cluster(plane, tmp_path_factory.mktemp("kubeconfigs"))
        made.kubectl("create", "namespace", NAMESPACE)
        made.kubectl("create", "serviceaccount", "gleaner-agent", "-n", NAMESPACE)
        for kind, plural in (("nodeprofile", "nodeprofiles"), ("topology", "topologies")):
            made.kubectl("apply", "-f", str(ROOT / "crds" / f"{kind}.yaml"))
            made.kubectl("wait", "--for=condition=Established", f"crd/{plural}.gleaner.dev", "--timeout=20s")
        made.kubectl("apply", "-f", "-", text=agent_role())
        account = f"--serviceaccount={NAMESPACE}:gleaner-agent"
        made.kubectl("create", "clusterrolebinding", "gleaner-agent", "--clusterrole=gleaner-agent", account)
        policy = (ROOT / "charts" / "gleaner" / "templates" / "agent-policy.yaml").read_text()
        made.kubectl("apply", "-f", "-", text=policy.replace("{{ .Release.Namespace }}", NAMESPACE))
        for node in ("a", "b", "c"):  # no agent of b's own ever runs: a test asks that nothing of it was published
            make_node(made, node)
        # It takes the API server a while to heed a new policy.
        unbound = made.token("")
        eventually(lambda: "bound to its pod" in write_profile(made, "a", unbound, "--dry-run=server"))
        yield made
    finally:
        plane.stop()


def write_profile(cluster: Cluster, name: str, token: str, *flags: str, owner: str = "") -> str:
    meta: dict[str, Any] = {"name": name}
    if owner:
        meta["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": owner, "name": name, "uid": "1"}]
    profile = {"apiVersion": "gleaner.dev/v1alpha1", "kind": "NodeProfile", "metadata": meta}
    text = json.dumps(profile)
    return cluster.kubectl("apply", "--server-side", *flags, "-f", "-", text=text, token=token, check=False)


def patch_status(cluster: Cluster, resource: str, patch: dict[str, Any], token: str) -> str:
    flags = ["--subresource=status", "--type=merge", "-p", json.dumps(patch)]
    return cluster.kubectl("patch", *resource.split("/"), *flags, token=token, check=False)


class Machine:
    """A /sys and /proc of one NIC, whose counters stand still until they are moved."""

    def __init__(self, folder: Path, speed: int = 1000) -> None:
        self.folder = folder
        self.card = "sys/devices/pci0000:00/0000:03:00.0"
        self.write(f"{self.card}/numa_node", "0")
        self.write("sys/bus/pci/drivers/e1000e/uevent", "")
        self.link(f"{self.card}/driver", "sys/bus/pci/drivers/e1000e")
        self.link("sys/bus/pci/devices/0000:03:00.0", self.card)
        self.write(f"{self.card}/net/eth0/operstate", "up")
        self.write(f"{self.card}/net/eth0/speed", str(speed))
        self.link(f"{self.card}/net/eth0/device", self.card)
        self.link("sys/class/net/eth0", f"{self.card}/net/eth0")
        self.write("proc/1/net/route", "Iface D G F R U M Mask\neth0 00000000 01 0003 0 0 0 00000000")
        self.write("proc/meminfo", "MemTotal: 4194304 kB\nMemAvailable: 4194304 kB")
        self.write("sys/fs/cgroup/cpuacct/cpuacct.usage", "1000000000")
        self.count(0)

    def write(self, path: str, text: str) -> None:
        full = self.folder / path
        full.parent.mkdir(parents=True, exist_ok=True)
        fresh = full.with_name(full.name + ".new")
        fresh.write_text(text)
        fresh.rename(full)  # a reader sees the old or the new

    def link(self, path: str, target: str) -> None:
        full = self.folder / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.symlink_to(os.path.relpath(self.folder / target, full.parent))

    def count(self, received: int) -> None:
        self.write(f"{self.card}/net/eth0/statistics/rx_bytes", str(received))
        self.write(f"{self.card}/net/eth0/statistics/tx_bytes", "0")


class Agent:
    def __init__(self, cluster: Cluster, machine: Machine, node: str, token: str, *flags: str) -> None:
        self.metrics, self.health = free_ports(2)
        command = [str(AGENT), f"--node={node}", f"--root={machine.folder}", "--cgroup-root=/", "--nvml="]
        command += [f"--kubeconfig={cluster.kubeconfig(f'agent-{node}', token)}", f"--metrics=127.0.0.1:{self.metrics}"]
        command += [f"--health=127.0.0.1:{self.health}", *flags]
        self.log = machine.folder / "log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", *command], stderr=log)

    def fetch(self, port: int, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def ready(self) -> bool:
        return self.fetch(self.health, "/readyz")[0] == 200

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=10)
        finally:
            self.process.kill()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def agent(cluster: Cluster, machine: Machine) -> Iterator[Agent]:
    cluster.kubectl("delete", "nodeprofiles", "--all")
    running = Agent(cluster, machine, "a", cluster.token("a"))
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait()
        print(running.log.read_text())


def status_of(cluster: Cluster, node: str = "a") -> dict[str, Any]:
    return cluster.get("nodeprofile", node).get("status", {})


def condition(status: dict[str, Any], kind: str) -> dict[str, Any]:
    return next((entry for entry in status.get("conditions", []) if entry["type"] == kind), {})


def test_agent_publishes_its_profile_and_advertises_summers(cluster: Cluster, agent: Agent) -> None:
    eventually(agent.ready)
    profile = cluster.get("nodeprofile", "a")
    owner = {"apiVersion": "v1", "kind": "Node", "name": "a", "uid": cluster.get("node", "a")["metadata"]["uid"]}
    assert profile["metadata"]["ownerReferences"] == [owner]
    status = profile["status"]
    assert status["bitsPerSecond"] == 10**9 and status["speedSource"] == "Sysfs"
    assert status["nics"][0]["name"] == "eth0" and status["nics"][0]["driver"] == "e1000e"
    assert status["spare"]["bitsPerSecond"] == 9 * 10**8
    assert condition(status, "Ready")["status"] == "True"
    assert condition(status, "SpeedKnown")["reason"] == "Sysfs"
    assert eventually(lambda: cluster.get("node", "a")["status"]["capacity"].get(SUMMER)) == "4"
    managers = cluster.get("nodeprofile", "a", "--show-managed-fields")["metadata"]["managedFields"]
    assert {entry["manager"] for entry in managers} == {"gleaner-agent"}

    code, text = agent.fetch(agent.metrics, "/metrics")
    assert code == 200
    assert re.search(r'^gleaner_node_bits_per_second\{node="a"\} 1000000000$', text, re.MULTILINE), text
    assert re.search(r'^gleaner_node_spare_cpus\{node="a"\} [0-9.]+$', text, re.MULTILINE)
    assert agent.end() == 0, agent.log.read_text()


def test_profile_follows_requests_and_label(cluster: Cluster, agent: Agent) -> None:
    eventually(agent.ready)
    spare = float(status_of(cluster)["spare"]["cpus"].rstrip("m")) / 1000
    assert 1.5 < spare <= 1.8  # of the node's two, less a margin and what agents requested
    make_pod(cluster, "default", "greedy", "a", "1500m")
    try:
        eventually(lambda: status_of(cluster)["spare"]["cpus"] in ("0",) or less(status_of(cluster), 500))
        cluster.kubectl("label", "node", "a", "gleaner.dev/bandwidth=100Mbit")
        changed = eventually(lambda: (now := status_of(cluster))["speedSource"] == "Label" and now)
        assert changed["bitsPerSecond"] == 10**8
        cluster.kubectl("delete", "nodeprofile", "a")
        cluster.kubectl("label", "--overwrite", "node", "a", "gleaner.dev/bandwidth=40Gbit")
        made_again = eventually(lambda: condition(status_of(cluster), "SpeedKnown").get("reason") == "ClaimAboveLink")
        assert made_again
        assert status_of(cluster)["bitsPerSecond"] == 10**9, "the link is no faster than that, whatever a label says"
        eventually(lambda: "ClaimAboveLink" in cluster.kubectl("get", "events", "-n", "default"))
    finally:
        cluster.kubectl("label", "node", "a", "gleaner.dev/bandwidth-")
        cluster.kubectl("delete", "pod", "greedy", "--force", "--grace-period=0")


def less(status: dict[str, Any], millicpus: float) -> bool:
    text = status["spare"]["cpus"]
    return (float(text[:-1]) if text.endswith("m") else 1000 * float(text)) < millicpus


def test_a_nic_faster_than_it_reports_is_an_event(cluster: Cluster, agent: Agent, machine: Machine) -> None:
    eventually(agent.ready)
    began = time.monotonic()

    def contradicted() -> dict[str, Any]:
        machine.count(int((time.monotonic() - began) * 3e9 / 8))  # 3 Gbit/s through a link of 1
        status = status_of(cluster)
        return status if condition(status, "SpeedKnown").get("reason") == "FasterThanClaimed" else {}

    status = eventually(contradicted)
    assert condition(status, "SpeedKnown")["status"] == "False"
    assert status["speedSource"] == "Measured" and status["bitsPerSecond"] > 2 * 10**9
    assert status["spare"]["bitsPerSecond"] < 10**9
    eventually(lambda: "FasterThanClaimed" in cluster.kubectl("get", "events", "-n", "default"))


class MeasuringAgents:
    """Agents of nodes a and c that measure each other. Another loopback address counts as another machine."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        cluster.kubectl("delete", "nodeprofiles", "--all")
        self._cluster = cluster
        self._folder = folder
        self._secret = folder / "secret"
        self._secret.write_text("known to both agents")
        self._secret.chmod(0o600)
        (port,) = free_ports(1)
        self._addresses = {"a": f"127.0.0.3:{port}", "c": f"127.0.0.4:{port}"}
        self.started: list[Agent] = []

    def start(self, node: str, speed: int) -> Agent:
        """Starts the agent of a node whose NIC reports this speed in Mbit/s, or -1."""
        (peer,) = (address for other, address in self._addresses.items() if other != node)
        flags = ["--measure-secret-file", str(self._secret), "--measure-listen", self._addresses[node]]
        machine = Machine(self._folder / f"{node}-{len(self.started)}", speed)
        agent = Agent(self._cluster, machine, node, self._cluster.token(node), *flags, "--measure-peers", peer)
        self.started.append(agent)
        return agent


@pytest.fixture
def measuring(cluster: Cluster, tmp_path: Path) -> Iterator[MeasuringAgents]:
    agents = MeasuringAgents(cluster, tmp_path)
    try:
        yield agents
    finally:
        for agent in agents.started:
            agent.process.kill()
            agent.process.wait()
            print(agent.log.read_text())


def test_agents_measure_an_unknown_speed_and_latencies(cluster: Cluster, measuring: MeasuringAgents) -> None:
    agents = [measuring.start("a", -1), measuring.start("c", 1000)]
    # On a busy machine a measurement may be too slow; the agent tries again after two minutes.
    measured = eventually(lambda: (now := status_of(cluster)).get("speedSource") == "Measured" and now, 300)
    assert measured["bitsPerSecond"] > 10**6
    assert condition(measured, "SpeedKnown")["reason"] == "Measured"
    assert status_of(cluster, "c")["speedSource"] == "Sysfs"

    # A round of latencies takes half a minute.
    (peer,) = eventually(lambda: status_of(cluster).get("peers"), 300)
    assert peer["node"] == "c" and 0 < peer["roundTripNanoseconds"] < 10**9
    eventually(lambda: [entry["node"] for entry in status_of(cluster, "c").get("peers", [])] == ["a"], 300)
    assert re.search(
        r'^gleaner_node_probe_missing_peers\{node="a"\} 0$', agents[0].fetch(agents[0].metrics, "/metrics")[1], re.M
    )
    assert [agent.end() for agent in agents] == [0, 0]

    eventually(measuring.start("c", 1000).ready)
    assert status_of(cluster, "c")["peers"][0]["node"] == "a", "a new process keeps the entries"


def test_agents_measure_bandwidths_across_groups(cluster: Cluster, measuring: MeasuringAgents) -> None:
    cluster.apply({"apiVersion": "gleaner.dev/v1alpha1", "kind": "Topology", "metadata": {"name": "cluster"}})
    groups = [{"name": f"rack-{node}", "level": "rack", "nodes": [node], "nodeCount": 1} for node in ("a", "c")]
    patch = {"status": {"nodeCount": 2, "groupCount": 2, "groups": groups}}
    assert "failed" not in patch_status(cluster, "topologies/cluster", patch, "")
    try:
        agents = {node: measuring.start(node, 1000) for node in ("a", "c")}
        # Agents know each other's names after a round of latencies. The agent that begins makes the other one busy.
        entries = eventually(
            lambda: [e for node in agents for e in status_of(cluster, node).get("peerBandwidths", [])], 300
        )
        assert entries[0]["node"] in agents and entries[0]["bitsPerSecond"] > 10**6
        (node,) = agents.keys() - {entries[0]["node"]}
        served = "".join(agent.fetch(agent.metrics, "/metrics")[1] for agent in agents.values())
        assert re.search(r'^gleaner_node_probe_bandwidth_measurements_total\{.*result="ok"\} 1$', served, re.MULTILINE)
        assert agents[node].end() == 0
        eventually(measuring.start(node, 1000).ready)
        assert status_of(cluster, node)["peerBandwidths"] == entries[:1], "a new process keeps the entries"
    finally:
        cluster.kubectl("delete", "topologies", "cluster")


def test_agent_outlives_the_api_server(cluster: Cluster, agent: Agent) -> None:
    eventually(agent.ready)
    before = status_of(cluster)["observedTime"]
    cluster.plane.kill_apiserver()
    time.sleep(3)
    assert agent.process.poll() is None
    assert agent.fetch(agent.metrics, "/metrics")[0] == 200, "sampling continues"
    cluster.plane.restart_apiserver()
    cluster.kubectl("label", "node", "a", "gleaner.dev/bandwidth=200Mbit")
    try:
        eventually(lambda: status_of(cluster).get("bitsPerSecond") == 2 * 10**8)
        assert status_of(cluster)["observedTime"] > before
    finally:
        cluster.kubectl("label", "node", "a", "gleaner.dev/bandwidth-")


def test_agent_of_another_node_is_refused(cluster: Cluster, machine: Machine) -> None:
    agent = Agent(cluster, machine, "b", cluster.token("a"))
    try:
        eventually(lambda: "may write the profile of its own node only" in agent.log.read_text())
        code, why = agent.fetch(agent.health, "/readyz")
        assert code == 503 and "own node only" in why
        assert cluster.get("nodeprofile", "b") == {}
        assert SUMMER not in cluster.get("node", "b")["status"]["capacity"]
    finally:
        assert agent.end() == 0


def test_policy_keeps_agents_to_their_own_profile(cluster: Cluster) -> None:
    own = cluster.token("a")
    assert "failed" not in write_profile(cluster, "a", own)
    assert "own node only" in write_profile(cluster, "b", own)
    assert "failed" not in write_profile(cluster, "b", "")  # an administrator
    spare = {"status": {"spare": {"cpus": "64"}}}
    assert "own node only" in patch_status(cluster, "nodeprofile/b", spare, own)
    assert "own node only" in cluster.kubectl("label", "nodeprofile", "b", "x=y", token=own, check=False)
    assert "failed" not in patch_status(cluster, "nodeprofile/a", spare, own)
    assert "nothing else" in write_profile(cluster, "a", own, owner="Deployment")
    assert "forbidden" in cluster.kubectl("delete", "nodeprofile", "a", token=own, check=False).lower()


def test_policy_keeps_agents_to_one_resource_of_their_own_node(cluster: Cluster) -> None:
    own = cluster.token("a")
    assert "failed" not in patch_status(cluster, "node/a", {"status": {"capacity": {SUMMER: "7"}}}, own)
    assert "failed" not in patch_status(cluster, "node/a", {"status": {"capacity": {SUMMER: "4"}}}, own)
    assert "own node only" in patch_status(cluster, "node/b", {"status": {"capacity": {SUMMER: "7"}}}, own)
    refused = {
        "gleaner.dev/summer only": [
            {"status": {"capacity": {"cpu": "64"}}},
            {"status": {"capacity": {"nvidia.com/gpu": "8"}}},
            {"status": {"capacity": {"pods": None}}},
            {"status": {"allocatable": {"cpu": "64"}}},
        ],
        "resources only": [
            {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
            {"status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.9"}]}},
        ],
        "labels": [{"metadata": {"labels": {"zone": "z2"}}}, {"metadata": {"annotations": {"x": "y"}}}],
    }
    for why, patches in refused.items():
        for patch in patches:
            assert why in patch_status(cluster, "node/a", patch, own), patch
    assert "failed" in cluster.kubectl("label", "node", "a", "zone=z3", "--overwrite", token=own, check=False)


def test_policy_refuses_tokens_that_are_not_bound_to_a_pod(cluster: Cluster) -> None:
    unbound = cluster.token("")
    for node in ("a", "b"):
        assert "bound to its pod" in write_profile(cluster, node, unbound)
        assert "bound to its pod" in patch_status(
            cluster, f"node/{node}", {"status": {"capacity": {SUMMER: "7"}}}, unbound
        )
