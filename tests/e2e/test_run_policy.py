"""Tests a TrainingJob's runPolicy, and failures of its pods, on a real cluster."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest
from lab.cluster import Cluster
from product import Job, submit, wait_until

SLEEP = ["sleep", "3600"]
SUCCEED = ["true"]


def fail_with(code: int) -> list[str]:
    return ["sh", "-c", f"exit {code}"]


def nothing_left(cluster: Cluster, namespace: str) -> bool:
    kinds = "pods,services,reductionplans,trainingjobs"
    left = json.loads(cluster.kubectl("-n", namespace, "get", kinds, "-o", "json"))["items"]
    return not [item for item in left if item["metadata"]["name"] != "kubernetes"]


def test_a_gang_succeeds_and_its_pods_stay_for_their_logs(gleaner: Cluster, namespace: str) -> None:
    job = submit(gleaner, namespace, "gang", SUCCEED, replicas=3)
    job.wait_phase("Succeeded")
    status = job.status()
    assert status["workersSucceeded"] == 3
    assert {"startTime", "completionTime"} <= status.keys()
    assert sorted(job.pods()) == ["gang-worker-0", "gang-worker-1", "gang-worker-2"]
    job.wait_event("Succeeded")


def test_an_exit_code_below_128_fails_the_job(gleaner: Cluster, namespace: str) -> None:
    job = submit(gleaner, namespace, "wrong", fail_with(3))
    job.wait_phase("Failed")
    failed = job.condition("Failed")
    assert failed["reason"] == "ContainerFailed" and "ended with 3" in failed["message"]
    assert job.status()["restarts"] == 0


def test_a_job_killed_by_a_signal_restarts_up_to_the_limit(gleaner: Cluster, namespace: str) -> None:
    job = submit(gleaner, namespace, "again", fail_with(143), run_policy={"backoffLimit": 1})
    job.wait_phase("Failed")
    assert job.condition("Failed")["reason"] == "BackoffLimitExceeded"
    assert job.status()["restarts"] == 1
    assert "again-worker-0-r1" in job.pods()
    job.wait_event("Restarting")


def test_deadline_and_time_to_live(gleaner: Cluster, namespace: str) -> None:
    policy = {"activeDeadlineSeconds": 3, "ttlSecondsAfterFinished": 4}
    job = submit(gleaner, namespace, "late", SLEEP, run_policy=policy)
    job.wait_phase("Failed")
    assert job.condition("Failed")["reason"] == "DeadlineExceeded"
    wait_until("the job is deleted after its time to live", lambda: nothing_left(gleaner, namespace))


def test_clean_pod_policy_all(gleaner: Cluster, namespace: str) -> None:
    job = submit(gleaner, namespace, "clean", SUCCEED, run_policy={"cleanPodPolicy": "All"})
    job.wait_phase("Succeeded")
    wait_until("its pods go", lambda: not job.pods())


def test_suspend_and_resume(gleaner: Cluster, namespace: str) -> None:
    job = submit(gleaner, namespace, "pause", SLEEP, replicas=2)
    job.wait_phase("Running")
    job.patch({"spec": {"runPolicy": {"suspend": True}}})
    job.wait_phase("Suspended")
    wait_until("its pods go", lambda: not job.pods())
    job.patch({"spec": {"runPolicy": {"suspend": False}}})
    job.wait_phase("Running")
    assert sorted(job.pods()) == ["pause-worker-0-r1", "pause-worker-1-r1"]


def test_a_missing_image_is_named(gleaner: Cluster, namespace: str) -> None:
    job = submit(gleaner, namespace, "image", SLEEP, container={"image": "localhost/nothing:1"})
    wait_until("the job says so", lambda: job.condition("Running").get("reason") == "ImagePullFailed")
    assert "localhost/nothing:1" in job.condition("Running")["message"]
    job.wait_event("ImagePullFailed")


def test_a_gang_that_does_not_fit_is_released(gleaner: Cluster, namespace: str) -> None:
    nodes = json.loads(gleaner.kubectl("get", "nodes", "-o", "json"))["items"]
    most = max(float(node["status"]["allocatable"]["cpu"]) for node in nodes)
    # A node has room for one such worker, and there is one more worker than nodes.
    resources = {"resources": {"requests": {"cpu": f"{0.6 * most:.1f}"}}}
    job = submit(gleaner, namespace, "wide", SLEEP, replicas=len(nodes) + 1, container=resources,
                 run_policy={"startDeadlineSeconds": 5})  # fmt: skip
    wait_until("it is released", lambda: job.condition("Created").get("reason") == "StartDeadlineExceeded")
    job.wait_event("StartDeadlineExceeded")
    wait_until("it holds no machine", lambda: not job.pods())


def test_a_gang_waits_for_quota(gleaner: Cluster, namespace: str) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "pods", "namespace": namespace}}
    gleaner.apply({**quota, "spec": {"hard": {"pods": "1"}}})
    wait_until("the quota counts", lambda: "used" in gleaner.get("quota", "pods", namespace).get("status", {}))
    job = submit(gleaner, namespace, "poor", SUCCEED, replicas=2)
    wait_until("the job says so", lambda: job.condition("Created").get("reason") == "QuotaExceeded")
    assert "exceeded quota" in job.condition("Created")["message"]
    assert all(pod["status"]["phase"] == "Pending" for pod in job.pods().values()), "no worker may start alone"
    gleaner.apply({**quota, "spec": {"hard": {"pods": "5"}}})
    job.wait_phase("Succeeded")


def test_a_deleted_pod_starts_the_gang_again(gleaner: Cluster, namespace: str) -> None:
    job = submit(gleaner, namespace, "robbed", SLEEP, replicas=2, run_policy={"backoffLimit": 0})
    job.wait_phase("Running")
    job.kubectl("delete", "pod", "robbed-worker-1", "--wait=false")
    wait_until("a new attempt", lambda: job.status()["attempt"] == 1)
    job.wait_phase("Running")
    assert job.status()["restarts"] == 0, "a deleted pod does not count as a failure of the job"


def test_a_worker_of_a_drained_node_moves_to_another_node(gleaner: Cluster, namespace: str) -> None:
    job = submit(gleaner, namespace, "drained", SLEEP, replicas=2)
    job.wait_phase("Running")
    node = job.pods()["drained-worker-0"]["spec"]["nodeName"]
    try:
        gleaner.kubectl("drain", node, "--pod-selector=gleaner.dev/role=worker", "--force")
        wait_until("a new attempt", lambda: job.status()["attempt"] == 1)
        job.wait_phase("Running")
        assert job.pods()["drained-worker-0-r1"]["spec"]["nodeName"] != node
        assert job.status()["restarts"] == 0
    finally:
        gleaner.kubectl("uncordon", node)


@pytest.mark.long
def test_a_node_without_power_does_not_stop_a_job(gleaner: Cluster, namespace: str) -> None:
    quick = [{"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2}
             for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")]  # fmt: skip
    selector = "app.kubernetes.io/name=gleaner-operator"
    listed = gleaner.kubectl("-n", "gleaner-system", "get", "pods", "-l", selector, "-o", "json")
    operators = {pod["spec"]["nodeName"] for pod in json.loads(listed)["items"]}
    assert operators, f"no pod has the label {selector}"
    names = [node["metadata"]["name"] for node in json.loads(gleaner.kubectl("get", "nodes", "-o", "json"))["items"]]
    others = [name for name in names if name not in operators]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": others}]}]}}}  # fmt: skip
    job = submit(gleaner, namespace, "dark", SLEEP, replicas=2, pod={"tolerations": quick, "affinity": affinity})
    job.wait_phase("Running")
    node = job.pods()["dark-worker-0"]["spec"]["nodeName"]
    gleaner.ask("node-off", node)
    try:
        wait_until("a new attempt", lambda: job.status()["attempt"] == 1)
        wait_until("it runs again", lambda: job.phase() == "Running" and job.status()["workersReady"] == 2)
        assert job.pods()["dark-worker-0-r1"]["spec"]["nodeName"] != node
    finally:
        gleaner.ask("node-on", node)
        gleaner.kubectl("wait", "--for=condition=Ready", f"node/{node}", "--timeout=240s")


def pending(job: Job) -> bool:
    return bool(job.status())


def running(job: Job) -> bool:
    return job.phase() == "Running"


def finished(job: Job) -> bool:
    return job.phase() == "Succeeded"


@pytest.mark.parametrize(
    ("command", "moment"), [(SLEEP, pending), (SLEEP, running), (SUCCEED, finished)], ids=["pending", "running", "done"]
)
def test_deleting_a_job_leaves_nothing(
    gleaner: Cluster, namespace: str, command: list[str], moment: Callable[[Job], bool]
) -> None:
    job = submit(gleaner, namespace, "gone", command, replicas=2)
    wait_until("the job reaches the phase to be deleted in", lambda: moment(job))
    job.delete()
    wait_until("nothing is left", lambda: nothing_left(gleaner, namespace))


def test_a_namespace_can_be_deleted_while_its_job_runs(gleaner: Cluster, namespace: str) -> None:
    job = submit(gleaner, namespace, "under", SLEEP, replicas=2)
    job.wait_phase("Running")
    gleaner.kubectl("delete", "namespace", namespace, "--wait=true", "--timeout=240s")
    gleaner.kubectl("create", "namespace", namespace)  # the fixture deletes it
    gleaner.kubectl("wait", "--for=create", "serviceaccount/default", "-n", namespace, "--timeout=80s")
    again = submit(gleaner, namespace, "under", SUCCEED, replicas=2)
    again.wait_phase("Succeeded")


def test_a_deleted_jobs_name_can_be_reused_at_once(gleaner: Cluster, namespace: str) -> None:
    first = submit(gleaner, namespace, "twin", SLEEP, replicas=2)
    first.wait_phase("Running")
    first.kubectl("delete", "trainingjob", "twin", "--wait=false")
    time.sleep(0.2)
    second = submit(gleaner, namespace, "twin", SUCCEED, replicas=2)
    second.wait_phase("Succeeded")
