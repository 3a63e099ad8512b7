"""Tests `kubectl gleaner` with a real API server: its output, and its messages if objects are missing."""

from __future__ import annotations

import json
import os
import subprocess
import textwrap
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import BUILD, GLEANER, ROOT, TIMEOUT
from real_api import PLURALS, Api, binaries, real_api, small_job

PLUGIN = BUILD / "bin" / "kubectl-gleaner"
MERGE = "application/merge-patch+json"
STEP_BYTES = 80_000_000
TOPOLOGY_DOCUMENT = ROOT / "docs" / "topology.md"
TOPOLOGY = {"apiVersion": "gleaner.dev/v1alpha1", "kind": "Topology", "metadata": {"name": "cluster"}}
RANKS = (
    "ranks follow the 2 groups of the workers' machines, so that a ring takes 1.2 ms instead of 2.3 ms for a "
    "partition, by the model"
)
RANK_MAP = {
    "attempt": 0,
    "order": "Topology",
    "message": RANKS,
    "groups": [
        {"name": "rack-a", "workers": "0-1", "uplinkBitsPerSecond": 25_000_000_000},
        {"name": "rack-b", "workers": "2-3"},
    ],
    "ringMicroseconds": 1200,
    "identityRingMicroseconds": 2300,
}


def now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def gleaner(api: Api, *arguments: str, program: Path = GLEANER) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "KUBECONFIG": str(api.kubeconfig)}
    environment["XDG_RUNTIME_DIR"] = str(api.kubeconfig.parent)  # for the jobs of these tests
    return subprocess.run([str(program), *arguments], capture_output=True, text=True, timeout=TIMEOUT, env=environment)


def shown(api: Api, *arguments: str, program: Path = GLEANER) -> str:
    done = gleaner(api, *arguments, program=program)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(api: Api, *arguments: str, program: Path = GLEANER) -> str:
    done = gleaner(api, *arguments, program=program)
    assert done.returncode == 1, done.stdout
    assert done.stdout == ""
    return done.stderr


def member(index: int, role: str, owned: int, traffic: int) -> dict[str, Any]:
    name = f"{role}-{index}"
    return {
        "name": name,
        "role": role,
        "pod": f"digits-{name}",
        "node": f"{role}-node-{index}",
        "bitsPerSecond": 10_000_000_000,
        "ownedBytes": owned,
        "trafficBytes": traffic,
    }


def worker(index: int, rank: int) -> dict[str, Any]:
    return {**member(index, "worker", STEP_BYTES // 10, 96_000_000), "rank": rank}


def add_topology(api: Api) -> None:
    """Creates the Topology of two racks and a node in none. The uplink of one rack is stated."""
    rack = "topology.kubernetes.io/rack"
    groups = [
        {"name": "rack-a", "level": rack, "nodes": ["summer-node-0", "worker-node-0", "worker-node-2"], "nodeCount": 3},
        {"name": "rack-b", "level": rack, "nodes": ["worker-node-1", "worker-node-3"], "nodeCount": 2},
    ]
    groups[0] |= {"uplinkBitsPerSecond": 25_000_000_000, "uplinkSource": "Stated", "latencyNanoseconds": 21_000}
    groups[1] |= {"latencyNanoseconds": 22_000}
    assumed = "the uplinks of rack-b are taken to carry all that their nodes send; state slower ones in spec.uplinks"
    conditions = [
        {"type": "Ready", "status": "True", "reason": "Labels", "message": "", "lastTransitionTime": now()},
        {
            "type": "UplinksKnown",
            "status": "False",
            "reason": "Assumed",
            "message": assumed,
            "lastTransitionTime": now(),
        },
    ]
    assert api.create(TOPOLOGY).ok
    status = {"nodeCount": 6, "groupCount": 2, "groups": groups, "conditions": conditions, "latencyNanoseconds": 43_000}
    answer = api.patch(TOPOLOGY, {"status": status}, "/status")
    assert answer.ok, answer.message


def add_cluster(api: Api) -> None:
    """Creates six nodes with profiles, a job of four workers, and its plan with two summers."""
    for name in [f"worker-node-{i}" for i in range(4)] + [f"summer-node-{i}" for i in range(2)]:
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        assert api.ask("POST", "/api/v1/nodes", node).ok
        ready = {"type": "Ready", "status": "True", "reason": "Test", "lastHeartbeatTime": now()}
        assert api.ask("PATCH", f"/api/v1/nodes/{name}/status", {"status": {"conditions": [ready]}}, MERGE).ok
        assert api.ask("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": None}}, MERGE).ok
        profile = {"apiVersion": "gleaner.dev/v1alpha1", "kind": "NodeProfile", "metadata": {"name": name}}
        assert api.create(profile).ok
        status = {
            "observedTime": now(),
            "cpus": "8",
            "memoryBytes": 16 << 30,
            "bitsPerSecond": 10_000_000_000,
            "speedSource": "Sysfs",
            "spare": {"cpus": "6", "memoryBytes": 8 << 30, "bitsPerSecond": 9_000_000_000},
        }
        if name in ("worker-node-0", "worker-node-1"):
            status["gpus"] = [{"uuid": f"GPU-{name}-{i}", "pciSwitch": f"s{i // 2}"} for i in range(4)]
        answer = api.patch(profile, {"status": status}, "/status")
        assert answer.ok, answer.message
    job = small_job("digits", communication={"compression": "FP16", "summers": {"min": 0, "max": 2}})
    container = job["spec"]["workers"]["template"]["spec"]["containers"][0]
    container["resources"] = {"limits": {"nvidia.com/gpu": 4}}
    assert api.create(job).ok
    conditions = [
        {"type": "Running", "status": "True", "reason": "AllWorkersRun", "message": "", "lastTransitionTime": now()}
    ]
    status = {
        "phase": "Running",
        "workersWanted": 4,
        "workersReady": 4,
        "goodput": "120 MB/s",
        "strategy": "summers, ring",
        "summers": {
            "wanted": 2,
            "had": 1,
            "reason": "WorthIt",
            "message": "a summer buys 9.0 % of the step",
            "lastChange": "summer-1 on n1 added",
            "lastChangeTime": now(),
        },
        "conditions": conditions,
        "rankMap": RANK_MAP,
    }
    answer = api.patch(job, {"status": status}, "/status")
    assert answer.ok, answer.message
    plan = {
        "apiVersion": "gleaner.dev/v1alpha1",
        "kind": "ReductionPlan",
        "metadata": {"name": "digits"},
        "spec": {
            "epoch": 2,
            "attempt": 0,
            "tensors": 3,
            "partitions": 40,
            "strategy": "summers, ring",
            "strategies": [
                {"strategy": "summers", "tensors": 2, "bytes": 1 << 20},
                {"strategy": "ring", "tensors": 1, "bytes": 4096},
            ],
            "schedules": [{"algorithm": "ring"}],
            "bytesPerStep": STEP_BYTES,
            "denseBytesPerStep": 2 * STEP_BYTES,
            "boundMicroseconds": 76_800,
            "boundWithoutSummersMicroseconds": 96_000,
            "rankMap": RANK_MAP,
            "members": [worker(index, rank) for rank, index in enumerate([0, 2, 1, 3])]
            + [member(i, "summer", STEP_BYTES * 3 // 10, 96_000_000) for i in range(2)],
        },
    }
    answer = api.create(plan)
    assert answer.ok, answer.message
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "digits.1"},
        "involvedObject": {
            "apiVersion": "gleaner.dev/v1alpha1",
            "kind": "TrainingJob",
            "name": "digits",
            "namespace": "default",
        },
        "type": "Normal",
        "reason": "SummersChosen",
        "message": "2 summers on machines with bandwidth to spare",
        "lastTimestamp": now(),
    }
    assert api.ask("POST", "/api/v1/namespaces/default/events", event).ok
    add_topology(api)


@pytest.fixture(scope="module")
def bare(kubernetes: None) -> Iterator[Api]:
    with real_api() as api:
        yield api


@pytest.fixture(scope="module")
def cluster(kubernetes: None) -> Iterator[Api]:
    with real_api() as api:
        api.install()
        add_cluster(api)
        yield api


@pytest.fixture(scope="module")
def reader(cluster: Api, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kubeconfig of a user who may read the jobs and plans of a namespace, and nothing else."""
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    rights = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    metadata = {"name": "reader"}
    rule = {"apiGroups": ["gleaner.dev"], "resources": ["trainingjobs", "reductionplans"], "verbs": ["get"]}
    binding = {
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}],
    }
    assert cluster.ask("POST", accounts, {"metadata": metadata}).ok
    assert cluster.ask("POST", f"{rights}/roles", {"metadata": metadata, "rules": [rule]}).ok
    assert cluster.ask("POST", f"{rights}/rolebindings", binding).ok
    answer = cluster.ask("POST", f"{accounts}/reader/token", {"spec": {}})
    assert answer.ok, answer.message
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": answer.body["status"]["token"]}
    kubeconfig = tmp_path_factory.mktemp("reader") / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(config))
    return kubeconfig


def test_a_cluster_without_gleaner_is_an_error(bare: Api) -> None:
    for arguments in (
        ["status"],
        ["status", "digits"],
        ["explain", "digits"],
        ["top"],
        ["logs", "digits"],
        ["topology"],
    ):
        said = refused(bare, *arguments)
        assert "is Gleaner installed there?" in said
        assert said.startswith(f"gleaner {arguments[0]}: ")


def test_status(cluster: Api) -> None:
    line = shown(cluster, "status").splitlines()[1].split()
    assert line[:4] == ["digits", "Running", "4/4", "0"]
    assert "default" in shown(cluster, "status", "-A")
    assert "No TrainingJobs in namespace kube-system" in shown(cluster, "status", "-n", "kube-system")
    assert shown(cluster, "status", "-o", "name") == "digits\n"
    assert json.loads(shown(cluster, "status", "-o", "json"))["items"][0]["metadata"]["name"] == "digits"
    text = shown(cluster, "status", "digits")
    for part in ("AllWorkersRun", "SummersChosen", "epoch 2 of attempt 0", "76.8 ms a step, without summers 96 ms",
                 "Auto; tensors are summed by summers, ring"):  # fmt: skip
        assert part in text
    everything = json.loads(shown(cluster, "status", "digits", "-o", "json"))
    assert everything["plan"]["spec"]["epoch"] == 2 and len(everything["events"]) == 1
    assert "there is no TrainingJob 'nothing' in namespace 'default'" in refused(cluster, "status", "nothing")


def test_explain(cluster: Api) -> None:
    text = shown(cluster, "explain", "digits")
    for part in ("worker-node-3", "summer-1", "30.00 %", "1.25 times as long", "the busiest link of each strategy",
                 "helps only the tensors that summers sum"):  # fmt: skip
        assert part in text
    explained = json.loads(shown(cluster, "explain", "digits", "-o", "json"))
    assert explained["limit"] == "schedules"
    assert "Strategy   2 tensors of 1.00 MiB by summers; 1 tensor of 4.00 KiB by ring" in text
    assert explained["strategy"] == "summers, ring" and explained["strategies"][1]["tensors"] == 1
    assert explained["one_more_summer"]["bound_seconds"] == 0, "unknown"
    assert explained["uplink"] is None, "schedules sum a tensor"
    assert "Autoscaler 2 summers wanted, 1 in the plan: WorthIt, a summer buys 9.0 % of the step" in text
    assert "summer-1 on n1 added" in text
    saved = "76.29 MiB instead of 152.59 MiB (2.00 times fewer)"
    assert f"Gradients  sent as FP16, unless the script chooses otherwise; bytes per step: {saved}\n" in text
    assert explained["dense_bytes_per_step"] == 2 * explained["bytes_per_step"]
    assert explained["gradients"] == {"compression": "FP16", "fusion_bytes": None}
    assert explained["autoscaler"]["reason"] == "WorthIt" and explained["autoscaler"]["wanted"] == 2
    assert [machine["node"] for machine in explained["machines"]][4:] == ["summer-node-0", "summer-node-1"]


def test_explain_shows_ways_of_gpus(cluster: Api) -> None:
    text = shown(cluster, "explain", "digits")
    assert "GPUs       4 in each machine of worker-0, worker-1; best way cpu-assisted: " in text
    assert "Gleaner goes copy today: " in text
    assert "Unknown for worker-2: the NodeProfile of worker-node-2 has no GPU; worker-3: " in text
    gpus = json.loads(shown(cluster, "explain", "digits", "-o", "json"))["gpus"]
    assert gpus["gpus_of_worker"] == 4 and gpus["machines"][0]["today"]["way"] == "copy"


def test_explain_shows_the_rank_map(cluster: Api) -> None:
    text = shown(cluster, "explain", "digits")
    lines = "".join(line for line in text.splitlines(True) if line.startswith(("Ranks ", "Network ")))
    assert textwrap.indent(lines, "    ") in TOPOLOGY_DOCUMENT.read_text() and lines.count("\n") == 2
    assert "\nworker-2   1      worker-node-2   " in text
    explained = json.loads(shown(cluster, "explain", "digits", "-o", "json"))
    assert [machine["rank"] for machine in explained["machines"]] == [0, 1, 2, 3, None, None]
    assert explained["rank_map"]["groups"][1] == {
        "name": "rack-b",
        "workers": ["worker-1", "worker-3"],
        "uplink_bits_per_second": None,
    }
    assert (explained["rank_map"]["ring_seconds"], explained["rank_map"]["identity_ring_seconds"]) == (0.0012, 0.0023)
    assert f"Ranks            {RANKS.removeprefix('ranks ')}\n" in shown(cluster, "status", "digits")


def test_topology_of_the_cluster(cluster: Api, tmp_path: Path) -> None:
    text = shown(cluster, "topology")
    assert textwrap.indent(text, "    ") in TOPOLOGY_DOCUMENT.read_text()
    made = gleaner(cluster, "topology", "-o", "json")
    assert made.stderr.startswith("gleaner topology: UplinksKnown is False, since the uplinks of rack-b are taken to ")
    network = json.loads(made.stdout)
    assert [host["name"] for host in network["hosts"]][:2] == ["summer-node-0", "summer-node-1"]
    uplinks = {link["a"]: link["bandwidth"] for link in network["links"] if link["b"] == "core"}
    assert uplinks == {"summer-node-1": 10e9, "rack-a": 25e9, "rack-b": 20e9}
    latencies = {link["a"]: link["latency_us"] for link in network["links"]}
    assert {end: latencies[end] for end in ("worker-node-1", "rack-b", "worker-node-0", "rack-a", "summer-node-1")} == {
        "worker-node-1": 11, "rack-b": 10.5, "worker-node-0": 10.5, "rack-a": 11, "summer-node-1": 21.5}  # fmt: skip
    file = tmp_path / "net.json"
    file.write_text(made.stdout)
    ranks = ["ranks", "--topology", str(file), "--algorithm", "ring", "--bytes", "1MiB", "-o", "json"]
    assert len(json.loads(shown(cluster, *ranks))["ranks"]) == 6
    assert "rack-b" in shown(cluster, "topology", "-o", "dot") and "rack-b" in shown(cluster, "topology", "-o", "svg")


def test_topology_that_nobody_wrote(cluster: Api) -> None:
    message = "the operator has not written the Topology of this cluster: does it run, and is it of this version?"
    cluster.delete(TOPOLOGY)
    assert message in refused(cluster, "topology")
    assert cluster.create(TOPOLOGY).ok  # as an administrator may do before the operator runs
    assert message in refused(cluster, "topology", "-o", "json")
    cluster.delete(TOPOLOGY)
    add_topology(cluster)


def test_topology_without_access(cluster: Api, reader: Path) -> None:
    said = refused(cluster, "topology", "--kubeconfig", str(reader))
    assert "no access: topologies.gleaner.dev" in said


def test_explain_goes_on_without_profiles(cluster: Api, reader: Path) -> None:
    text = shown(cluster, "explain", "digits", "-n", "default", "--kubeconfig", str(reader))
    assert "GPUs       unknown, since NodeProfiles can't be read: no access: " in text
    assert "Autoscaler 2 summers wanted" in text


def test_plan_of_a_job(cluster: Api) -> None:
    text = shown(cluster, "plan", "digits")
    assert "Workers on no machine yet: 4, assumed to have 10 Gbit/s each" in text
    plan = json.loads(shown(cluster, "plan", "digits", "--bytes", "16MiB", "-o", "json"))
    assert len(plan["workers"]) == 4 and len(plan["summers"]) == 2
    assert all(summer["node"].endswith(("node-0", "node-1", "node-2", "node-3")) for summer in plan["summers"])
    assert sum(entry["bytes"] for entry in plan["workers"] + plan["summers"]) == 16 << 20
    assert "give either JOB or numbers" in gleaner(cluster, "plan", "digits", "--workers", "3").stderr


def test_top_and_logs(cluster: Api) -> None:
    text = shown(cluster, "top")
    assert "summer-node-1   10 Gbit/s   9 Gbit/s" in text
    assert "default/digits" in text and "summers, ring" in text
    assert len(json.loads(shown(cluster, "top", "-o", "json"))["nodes"]) == 6
    assert "kubectl -n default logs -l gleaner.dev/job=digits,gleaner.dev/role=worker" in shown(
        cluster, "logs", "digits"
    )


def test_status_lists_local_jobs_beside_those_of_the_cluster(cluster: Api) -> None:
    variables = {**os.environ, "XDG_RUNTIME_DIR": str(cluster.kubeconfig.parent)}
    command = [str(GLEANER), "run", "--workers", "1", "--job", "at-home", "--", "sleep", str(TIMEOUT)]
    local = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=variables)
    try:
        assert f"--pid {local.pid}" in local.stderr.readline()
        here, there = shown(cluster, "status").split("\n\n")
        assert "at-home" in here and "digits" in there
        listed = json.loads(shown(cluster, "status", "-o", "json"))
        assert len(listed["items"]) == 1 and "at-home" in [job["job"] for job in listed["localJobs"]]
        for flags in (["-n", "default"], ["-A"], ["-o", "name"]):
            assert "at-home" not in shown(cluster, "status", *flags)
        assert "localJobs" not in json.loads(shown(cluster, "status", "-A", "-o", "json"))
    finally:
        local.terminate()
        local.communicate(timeout=TIMEOUT)
    assert "at-home" not in shown(cluster, "status")


def test_as_a_plugin_of_kubectl(cluster: Api) -> None:
    environment = {**os.environ, "PATH": f"{PLUGIN.parent}:{os.environ['PATH']}"}
    environment["KUBECONFIG"] = str(cluster.kubeconfig)
    kubectl = binaries("kube") / "kubectl"
    done = subprocess.run(
        [str(kubectl), "gleaner", "status", "digits"], capture_output=True, text=True, timeout=TIMEOUT, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert "AllWorkersRun" in done.stdout
    assert refused(cluster, "status", "nothing", program=PLUGIN).startswith("kubectl gleaner status: ")
    assert "kubectl gleaner [OPTIONS]" in gleaner(cluster, "--help", program=PLUGIN).stdout


def test_kubectl_gleaner_changes_nothing(cluster: Api) -> None:
    # The version of a list grows with every write to the server, also with those of its own leases.
    def versions() -> list[str]:
        lists = [cluster.ask("GET", f"/apis/gleaner.dev/v1alpha1/{plural}") for plural in PLURALS.values()]
        return [item["metadata"]["resourceVersion"] for each in lists for item in each.body["items"]]

    before = versions()
    commands = (["status"], ["explain", "digits"], ["plan", "digits"], ["top"], ["logs", "digits"], ["topology"])
    for arguments in commands:
        shown(cluster, *arguments)
    assert len(before) == 9 and versions() == before


def test_errors_of_connection(cluster: Api, tmp_path: Path) -> None:
    assert "there is no kubeconfig" in refused(cluster, "status", "--kubeconfig", str(tmp_path / "none"))
    closed = tmp_path / "closed"
    closed.write_text(
        cluster.kubeconfig.read_text().replace("server: https://127.0.0.1:", "server: https://127.0.0.1:1")
    )
    said = refused(cluster, "status", "--kubeconfig", str(closed))
    assert "can't read trainingjobs" in said


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str) -> None:
    done = subprocess.run([str(GLEANER), "completion", shell], capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 0 and "explain" in done.stdout and "--all-namespaces" in done.stdout
    if shell == "bash":
        script = done.stdout + 'COMP_WORDS=(gleaner sta); COMP_CWORD=1; _gleaner; echo "${COMPREPLY[@]}"\n'
        run = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=TIMEOUT)
        assert run.stdout == "status\n", run.stderr
