"""Tests training on a real cluster: examples/digits.yaml as users apply it, undisturbed and with failures."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from digits import EXAMPLES, LONG, TRAIN, in_epoch, result
from lab.cluster import Cluster
from product import BUILD, SYSTEM, Job, apply_file, leader, submit, wait_until


def process_of(cluster: Cluster, pod: dict[str, object], program: str) -> int:
    """Returns the process id, in the lab, of a program in this pod. Finds the process by its cgroup."""
    uid = str(pod["metadata"]["uid"])  # type: ignore[index]
    find = (
        f"for p in /proc/[0-9]*; do grep -qs pod{uid} $p/cgroup && tr '\\0' ' ' <$p/cmdline | grep -q '{program}' "
        "&& ! grep -qs 'State:.Z' $p/status && basename $p; done; true"
    )
    found = cluster.run("bash", "-c", find).stdout.split()
    assert found, f"no process {program} in pod {uid}"
    return int(found[-1])


def kill(cluster: Cluster, pod: dict[str, object], program: str) -> None:
    cluster.run("kill", "-KILL", str(process_of(cluster, pod, program)))


def test_digits_through_summers(gleaner: Cluster, namespace: str, reference: tuple[str, float]) -> None:
    job = apply_file(gleaner, EXAMPLES / "digits.yaml", namespace, "digits")
    in_epoch(job, 3)
    # The second summer may join later than the first.
    wait_until(
        "four workers and two summers are in the plan",
        lambda: gleaner.get("reductionplan", "digits", namespace)["status"].get("acknowledged") == 6,
    )
    workers, summers = job.pods(), job.pods("summer")
    assert len(workers) == 4 and len(summers) == 2
    nodes = [pod["spec"]["nodeName"] for pod in [*workers.values(), *summers.values()]]
    assert len(set(nodes)) == 6, "four workers' machines and two others"
    assert {pod["metadata"]["annotations"]["kubernetes.io/egress-bandwidth"] for pod in summers.values()} == {
        "100000000"
    }
    wait_until("goodput and efficiency are known", lambda: bool(job.status().get("efficiency")))
    plan = gleaner.get("reductionplan", "digits", namespace)
    assert [member["name"] for member in plan["spec"]["members"]] == [
        *(f"worker-{i}" for i in range(4)),
        "summer-0",
        "summer-1",
    ]
    # ownedBytes counts all tensors of the plan, including tensors that were only broadcast at the start.
    assert sum(member["ownedBytes"] for member in plan["spec"]["members"]) >= plan["spec"]["bytesPerStep"] > 0
    assert plan["status"]["committedEpoch"] >= 2 and plan["status"]["acknowledged"] == 6
    shown = job.kubectl("get", "tj", "digits")
    assert re.search(r"digits\s+Running\s+4/4\s+2\s+\d+\s+[0-9.]+ MB/s\s+[0-9.]+ %", shown), shown
    job.wait_phase("Succeeded", seconds=LONG)
    assert result(job, "digits-worker-0") == reference
    wait_until("summers give their machines back", lambda: not job.pods("summer"))


@pytest.mark.long
def test_digits_without_summers(gleaner: Cluster, namespace: str, reference: tuple[str, float]) -> None:
    job = apply_file(gleaner, EXAMPLES / "digits-k0.yaml", namespace, "digits-k0")
    job.wait_phase("Succeeded", seconds=LONG)
    assert not job.pods("summer")
    assert result(job, "digits-k0-worker-0") == reference


def kill_operator(cluster: Cluster, job: Job) -> None:
    before = leader(cluster)
    kill(cluster, cluster.get("pod", before.split("_")[0], SYSTEM), "gleaner-operator")
    wait_until("another operator leads", lambda: leader(cluster) not in ("", before))


def kill_apiserver(cluster: Cluster, job: Job) -> None:
    cluster.ask("kill-apiserver")
    time.sleep(5)
    cluster.ask("start-apiserver")
    wait_until("it answers", lambda: cluster.run("kubectl", "get", "--raw", "/readyz", check=False).returncode == 0)


@pytest.mark.parametrize("accident", [kill_operator, kill_apiserver])
def test_training_survives_the_loss_of_a_component(
    gleaner: Cluster, namespace: str, reference: tuple[str, float], accident: Callable[[Cluster, Job], None]
) -> None:
    job = apply_file(gleaner, EXAMPLES / "digits.yaml", namespace, "digits")
    in_epoch(job, 3)
    before = {name: pod["metadata"]["uid"] for name, pod in {**job.pods(), **job.pods("summer")}.items()}
    accident(gleaner, job)
    after = {name: pod["metadata"]["uid"] for name, pod in {**job.pods(), **job.pods("summer")}.items()}
    assert after == before or job.phase() == "Succeeded", "no pod is lost or made twice"
    job.wait_phase("Succeeded", seconds=LONG)
    assert sorted(job.pods()) == [f"digits-worker-{i}" for i in range(4)]
    assert job.status()["attempt"] == 0
    assert result(job, "digits-worker-0") == reference


def test_a_killed_worker_starts_again_from_the_checkpoint(
    gleaner: Cluster, namespace: str, reference: tuple[str, float], tmp_path: Path
) -> None:
    # Only worker 0 uses the checkpoint. A folder of this machine, which all nodes see, serves as shared storage.
    node = "n1"
    spec = {
        "nodeSelector": {"kubernetes.io/hostname": node},
        "initContainers": [{"name": "open", "image": "gleaner-example:0.1.0", "securityContext": {"runAsUser": 0},
                            "command": ["chmod", "0777", "/checkpoint"],
                            "volumeMounts": [{"name": "checkpoint", "mountPath": "/checkpoint"}]}],
        "volumes": [{"name": "checkpoint", "hostPath": {"path": str(tmp_path), "type": "Directory"}}],
    }  # fmt: skip
    mount = {"volumeMounts": [{"name": "checkpoint", "mountPath": "/checkpoint"}]}
    job = submit(gleaner, namespace, "killed", [*TRAIN, "--checkpoint", "/checkpoint"], replicas=4, pod=spec,
                 container=mount, communication={"strategy": "Summers"})  # fmt: skip
    in_epoch(job, 3)
    kill(gleaner, job.pods()["killed-worker-2"], "train.py")
    wait_until("the job reports the restart", lambda: job.status().get("restarts") == 1)
    assert "killed-worker-2" in job.condition("Restarting")["message"]
    job.wait_phase("Succeeded", seconds=LONG)
    assert "resumed after epoch" in job.log("killed-worker-0-r1")
    assert result(job, "killed-worker-0-r1") == reference


def test_a_foreign_jobs_token_is_refused(gleaner: Cluster, namespace: str) -> None:
    victim = submit(gleaner, namespace, "victim", TRAIN, replicas=2)
    victim.wait_phase("Running")
    # The thief presents its own token, but claims to be worker 1 of the other job.
    pretend = f"GLEANER_JOB={namespace}/victim/0 GLEANER_WORKER=1 exec {' '.join(TRAIN)}"
    thief = submit(gleaner, namespace, "thief", ["sh", "-c", pretend])
    thief.wait_phase("Failed", seconds=LONG)
    assert "is not that of this member" in thief.log("thief-worker-0")
    victim.wait_phase("Succeeded", seconds=LONG)


def test_the_command_line_tells_what_a_job_does(gleaner: Cluster, namespace: str) -> None:
    job = apply_file(gleaner, EXAMPLES / "digits.yaml", namespace, "digits")
    in_epoch(job, 2)
    wait_until(
        "the plan has tensors", lambda: job.status().get("epoch", 0) >= 2 and bool(job.status().get("efficiency"))
    )
    program = str(BUILD / "bin" / "gleaner")
    shown = gleaner.run(program, "explain", "digits", "-n", namespace).stdout
    assert "summer-1" in shown and "worker-3" in shown
    listed = json.loads(gleaner.run(program, "status", "-n", namespace, "-o", "json").stdout)
    assert "digits" in json.dumps(listed)
