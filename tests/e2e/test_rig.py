"""Tests the lab itself: the properties of the cluster that the other tests in this folder rely on."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Callable

import pytest
from conftest import start_cluster, stop_cluster
from lab.cluster import WORKPLACE, Cluster
from lab.control_plane import ControlPlane, User
from lab.pods import pod, service

# A program that asks the API server for its own identity, with the credentials that every pod gets.
ASK = """
import json, ssl, sys, urllib.request
account = "/var/run/secrets/kubernetes.io/serviceaccount/"
context = ssl.create_default_context(cafile=account + "ca.crt")
question = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
request = urllib.request.Request(
    "https://kubernetes.default.svc/apis/authentication.k8s.io/v1/selfsubjectreviews",
    json.dumps(question).encode(),
    {"Authorization": "Bearer " + open(account + "token").read(), "Content-Type": "application/json"},
)
print(json.load(urllib.request.urlopen(request, context=context, timeout=10))["status"]["userInfo"]["username"])
"""

FETCH = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=3).read().decode())"

# A program that receives data on port 5000, and prints the Mbit/s of each second.
RECEIVE = """
import socket, time
connection, _ = socket.create_server(("", 5000)).accept()
start, second, count = time.monotonic(), 1, 0
while data := connection.recv(1 << 16):
    count += len(data)
    if time.monotonic() - start > second:
        print(count * 8 / 1e6, flush=True)
        second, count = second + 1, 0
"""

SEND = """
import socket, sys, time
connection = socket.create_connection((sys.argv[1], 5000), timeout=20)
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    connection.sendall(bytes(1 << 16))
"""


def wait_for(condition: Callable[[], bool], timeout: float = 160) -> None:
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, f"waited {timeout} s in vain"
        time.sleep(0.2)


def wait_for_pod(cluster: Cluster, namespace: str, name: str, condition: str = "condition=Ready") -> None:
    cluster.kubectl("wait", f"--for={condition}", f"pod/{name}", "-n", namespace, "--timeout=160s")


def test_nodes_are_ready_and_have_the_requested_size(cluster: Cluster) -> None:
    nodes = json.loads(cluster.kubectl("get", "nodes", "-o", "json"))["items"]
    assert [node["metadata"]["name"] for node in nodes] == [f"n{index}" for index in range(1, len(nodes) + 1)]
    for node in nodes:
        ready = [each["status"] for each in node["status"]["conditions"] if each["type"] == "Ready"]
        assert ready == ["True"]
        assert (node["status"]["capacity"]["cpu"], node["status"]["capacity"]["memory"]) == ("8", "16Gi")


def test_pod_reaches_the_api_server_by_name_with_its_token(cluster: Cluster, namespace: str) -> None:
    cluster.apply(pod("asks", ["python3", "-c", ASK], namespace=namespace))
    wait_for_pod(cluster, namespace, "asks", "jsonpath={.status.phase}=Succeeded")
    assert cluster.kubectl("logs", "asks", "-n", namespace).strip() == f"system:serviceaccount:{namespace}:default"


def test_service_leads_to_a_pod_on_another_node(cluster: Cluster, namespace: str) -> None:
    serve = ["python3", "-m", "http.server", "8000", "--directory", "/etc"]
    cluster.apply(
        pod("serves", serve, "n1", namespace=namespace, labels={"app": "serves"}),
        service("files", 8000, {"app": "serves"}, namespace=namespace),
        pod("asks", ["sleep", "inf"], "n2", namespace=namespace),
    )
    wait_for_pod(cluster, namespace, "serves")
    wait_for_pod(cluster, namespace, "asks")
    fetch = ["exec", "asks", "-n", namespace, "--", "python3", "-c", FETCH, f"http://files.{namespace}:8000/passwd"]
    answers: list[str] = []

    def answered() -> bool:
        done = cluster.run("kubectl", *fetch, check=False)
        answers[:] = [done.stdout]
        return done.returncode == 0

    wait_for(answered)
    assert answers[0].startswith("root:")


@pytest.mark.parametrize("direction", ["ingress", "egress"])
def test_bandwidth_follows_the_annotation(cluster: Cluster, namespace: str, direction: str) -> None:
    shaped = {f"kubernetes.io/{direction}-bandwidth": "200M"}
    receiver, sender = (shaped, {}) if direction == "ingress" else ({}, shaped)
    cluster.apply(pod("receives", ["python3", "-c", RECEIVE], "n1", receiver, namespace))
    wait_for_pod(cluster, namespace, "receives")
    address = cluster.get("pod", "receives", namespace)["status"]["podIP"]
    cluster.apply(pod("sends", ["python3", "-c", SEND, address, "6.5"], "n2", sender, namespace))
    wait_for_pod(cluster, namespace, "receives", "jsonpath={.status.phase}=Succeeded")
    rates = [float(line) for line in cluster.kubectl("logs", "receives", "-n", namespace).split()]
    # The shaper counts 1514 bytes per packet, of which 1448 are payload.
    wire = [rate * 1514 / 1448 for rate in rates[:5]]
    assert len(wire) == 5
    assert 180 <= sum(wire) / len(wire) <= 220, rates


def test_node_without_power_is_lost_and_comes_back(cluster: Cluster, namespace: str) -> None:
    cluster.apply(pod("stays", ["sleep", "inf"], "n3", namespace=namespace))
    wait_for_pod(cluster, namespace, "stays")
    cluster.ask("node-off", "n3")
    assert cluster.ask("status")["nodes"]["n3"] == "off"
    cluster.kubectl("wait", "--for=condition=Ready=Unknown", "node/n3", "--timeout=160s")
    cluster.ask("node-on", "n3")
    cluster.kubectl("wait", "--for=condition=Ready", "node/n3", "--timeout=240s")


def test_cluster_outlives_its_api_server(cluster: Cluster) -> None:
    cluster.ask("kill-apiserver")
    assert cluster.run("kubectl", "get", "nodes", "--request-timeout=2s", check=False).returncode != 0
    cluster.ask("start-apiserver")
    assert "n1" in cluster.kubectl("get", "nodes")


def descendants(pid: int) -> set[int]:
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout.split()
    return {pid}.union(*(descendants(int(child)) for child in children))


def traces(name: str) -> list[str]:
    """Returns all traces that a cluster of this name leaves on the machine: links, tables, folders, cgroups, mounts."""
    links = re.findall(r"^\d+: (node\d+|cluster|cni0)\b", os.popen("ip -o link").read(), re.MULTILINE)
    tables = os.popen("nft list tables 2>/dev/null").read().split("\n")
    folders = [Path(f"/dev/shm/gleaner-cluster-{name}"), WORKPLACE / f"cluster-{name}"]
    folders += Path("/sys/fs/cgroup").glob(f"*/gleaner-{name}")
    mounts = [line for line in Path("/proc/mounts").read_text().splitlines() if f"cluster-{name}" in line]
    kube = [table for table in tables if "kube-proxy" in table]
    return [*links, *kube, *(str(folder) for folder in folders if folder.exists()), *mounts]


@pytest.mark.parametrize("end", ["down", "lab killed", "holder killed"])
def test_a_cluster_leaves_nothing_behind(cluster: Cluster, end: str) -> None:
    if cluster.inside():
        pytest.skip("this test needs the machine itself, and runs inside a cluster")
    forwarding = Path("/proc/sys/net/ipv4/ip_forward").read_text()
    process = start_cluster("brief", "--nodes", "2")
    other = Cluster("brief")
    other.apply(pod("runs", ["sleep", "inf"], "n1"))
    other.kubectl("wait", "--for=condition=Ready", "pod/runs", "--timeout=160s")
    lab = int((other.folder / "pid").read_text())
    everything = descendants(lab)
    assert len(everything) > 10
    on_the_machine = [trace for trace in traces("brief") if not trace.startswith(("/dev/shm", "/sys", str(WORKPLACE)))]
    assert on_the_machine == []
    if end != "down":
        os.kill(lab if end == "lab killed" else process.pid, signal.SIGKILL)
        wait_for(lambda: not any(runs(pid) for pid in everything))
    if end == "holder killed":
        process.communicate()
        other.down()
    else:
        stop_cluster(process)
    assert traces("brief") == []
    assert not any(runs(pid) for pid in everything)
    assert Path("/proc/sys/net/ipv4/ip_forward").read_text() == forwarding


def runs(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


def test_control_plane_alone(tmp_path: Path) -> None:
    with ControlPlane(users=[User("bob", "token-of-bob", ("readers",))]) as plane:
        folder = plane.dir
        assert plane.get("/api/v1/namespaces/default")[0] == 200
        plane.kill_apiserver()
        assert plane.get("/readyz")[0] == 0
        plane.restart_apiserver()
        assert plane.get("/readyz")[0] == 200
        plane.compact()
        status, body = plane.get("/api/v1/namespaces?resourceVersion=1&resourceVersionMatch=Exact")
        assert (status, json.loads(body)["reason"]) == (410, "Expired")
        pids = list(plane.pids.values())
    assert not folder.exists()
    assert not any(runs(pid) for pid in pids)


def test_control_plane_program_ends_with_its_input() -> None:
    command = [str(Path(__file__).parent / "control-plane"), "--user", "bob=token-of-bob:readers"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        plane = json.loads(process.stdout.readline())
        answers = []
        for line in ("kill-apiserver", "kill-apiserver", "start-apiserver", "nonsense"):
            process.stdin.write(line + "\n")
            process.stdin.flush()
            answers.append(process.stdout.readline().split()[0])
        assert answers == ["ok", "error", "ok", "error"]
        process.stdin.close()
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        process.wait()
    assert not Path(plane["dir"]).exists()
    assert not any(runs(pid) for pid in plane["pids"].values())
