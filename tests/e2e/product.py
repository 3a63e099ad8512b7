"""Installs Gleaner in the cluster by its chart, and runs TrainingJobs as users write them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional

from lab.cluster import Cluster
from lab.pods import pod
from lab.spec import SCHEDULER_EXTENDER

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "gleaner"
BUILD = Path(os.environ.get("GLEANER_BUILD", ROOT / "build" / "release"))
SYSTEM = "gleaner-system"
NIC = "1Gbit"  # the agents' bandwidth setting, since they cannot read the speed of virtual NICs
VALUES = {
    "schedulerExtender.service.clusterIP": SCHEDULER_EXTENDER,
    "agent.bandwidth": NIC,
    "agent.measure.enabled": "true",
    # A summer sees the CPU load of the whole real machine, which is the load of all nodes together. With the
    # value 1 a summer measures the load but never leaves.
    "summers.yieldAbove": "1",
}
PATIENCE = 360.0  # deadlines are far above usual durations, for slow and busy machines
STEPS = 20  # more than can be in flight or unreported when a test begins to count


class Timeout(AssertionError):
    """An awaited condition did not become true in time."""


def wait_until(what: str, condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Timeout(f"waited {seconds:.0f} s in vain: {what}")
        time.sleep(0.3)


def install(cluster: Cluster, values: Optional[dict[str, str]] = None) -> None:
    """Installs the chart, or upgrades the release to these values, and waits until everything is ready."""
    # Nodes share the real machine's CPUs, so an agent takes its node's use from the node's cgroup.
    use = {"agent.cgroupRoot": f"/gleaner-{cluster.name}/$(NODE_NAME)"}
    settings = [f"--set={name}={value}" for name, value in {**VALUES, **use, **(values or {})}.items()]
    cluster.run(
        "helm",
        "upgrade",
        "--install",
        "gleaner",
        str(CHART),
        "-n",
        SYSTEM,
        "--create-namespace",
        *settings,
        "--wait",
        "--timeout",
        "480s",
    )
    wait_until("every node has a profile with spare bandwidth", lambda: profiles_ready(cluster))


def profiles_ready(cluster: Cluster, least_cpus: int = 0) -> bool:
    """Returns whether each node has spare bandwidth, and at least `least_cpus` spare thousandths of a CPU."""
    profiles = json.loads(cluster.kubectl("get", "nodeprofiles", "-o", "json"))["items"]
    spare = [profile.get("status", {}).get("spare", {}) for profile in profiles]
    nodes = cluster.kubectl("get", "nodes", "-o", "name").split()
    return len(spare) == len(nodes) and all(
        each.get("bitsPerSecond", 0) > 0 and milli(each.get("cpus", "0")) >= least_cpus for each in spare
    )


def machines_rest(cluster: Cluster) -> bool:
    """Returns whether all machines may have summers, that is, whether no effect of an earlier test is left."""
    for node in json.loads(cluster.kubectl("get", "nodes", "-o", "json"))["items"]:
        ready = [each["status"] for each in node["status"]["conditions"] if each["type"] == "Ready"]
        if ready != ["True"] or node["spec"].get("taints"):
            return False
    # An idle machine has more than one spare core. A machine whose CPUs a pod requested has none until its agent
    # reports again.
    return profiles_ready(cluster, least_cpus=250)


def leader(cluster: Cluster) -> str:
    """Returns the leader's identity: the operator's pod name, "_", and a mark that differs after a container restart.
    Returns an empty string if nobody leads."""
    lease = cluster.find("lease", "gleaner-operator", SYSTEM) or {}
    return str(lease.get("spec", {}).get("holderIdentity") or "")


def process_of(cluster: Cluster, pod: dict[str, Any], program: str) -> int:
    """Returns the process id, in the lab, of a program in this pod. Finds the process by its cgroup."""
    uid = str(pod["metadata"]["uid"])
    find = (
        f"for p in /proc/[0-9]*; do grep -qs pod{uid} $p/cgroup && tr '\\0' ' ' <$p/cmdline | grep -q '{program}' "
        "&& ! grep -qs 'State:.Z' $p/status && basename $p; done; true"
    )
    found = cluster.run("bash", "-c", find).stdout.split()
    assert found, f"no process {program} in pod {uid}"
    return int(found[-1])


def kill(cluster: Cluster, pod: dict[str, Any], program: str) -> None:
    cluster.run("kill", "-KILL", str(process_of(cluster, pod, program)))


def leading_pod(cluster: Cluster) -> dict[str, Any]:
    return cluster.get("pod", leader(cluster).split("_")[0], SYSTEM)


def wait_for_apiserver(cluster: Cluster) -> None:
    ready = ("kubectl", "get", "--raw", "/readyz")
    wait_until("the API server answers", lambda: cluster.run(*ready, check=False).returncode == 0)


class Job:
    """A TrainingJob in the cluster."""

    def __init__(self, cluster: Cluster, name: str, namespace: str) -> None:
        self.cluster, self.name, self.namespace = cluster, name, namespace

    def kubectl(self, *arguments: str) -> str:
        return self.cluster.kubectl("-n", self.namespace, *arguments)

    def object(self) -> dict[str, Any]:
        return self.cluster.get("trainingjob", self.name, self.namespace)

    def status(self) -> dict[str, Any]:
        return dict(self.object().get("status", {}))

    def phase(self) -> str:
        return str(self.status().get("phase", ""))

    def condition(self, kind: str) -> dict[str, Any]:
        found = [c for c in self.status().get("conditions", []) if c["type"] == kind]
        return dict(found[0]) if found else {}

    def wait_phase(self, *phases: str, seconds: float = PATIENCE) -> None:
        """Waits until the phase is one of `phases`. Fails at once if the phase is final and none of these."""
        seen = ""

        def there() -> bool:
            nonlocal seen
            seen = self.phase()
            if seen in ("Succeeded", "Failed") and seen not in phases:
                raise AssertionError(f"{self.name} is {seen}: {self.status().get('conditions')}\n{self.events()}")
            return seen in phases

        try:
            wait_until(f"{self.name} becomes {' or '.join(phases)}", there, seconds)
        except Timeout as error:
            raise Timeout(f"{error}; it is {seen}: {self.status()}\n{self.events()}") from None

    def wait_event(self, reason: str) -> None:
        """Waits for an Event: the operator writes it beside the status, and a busy API server may show it later."""
        wait_until(f"{self.name} has the Event {reason}", lambda: reason in self.events())

    def events(self) -> str:
        return self.kubectl(
            "get",
            "events",
            "--field-selector",
            f"involvedObject.name={self.name}",
            "-o",
            "custom-columns=R:.reason,M:.message",
        )

    def pods(self, role: str = "worker") -> dict[str, dict[str, Any]]:
        selector = f"gleaner.dev/job={self.name},gleaner.dev/role={role}"
        listed = json.loads(self.kubectl("get", "pods", "-l", selector, "-o", "json"))["items"]
        return {pod["metadata"]["name"]: pod for pod in listed}

    def plan(self) -> dict[str, Any]:
        """Returns the job's ReductionPlan, or one without members and steps if there is none yet."""
        empty = {"spec": {"epoch": 0, "members": []}, "status": {"steps": 0, "acknowledged": 0}}
        return self.cluster.find("reductionplan", self.name, self.namespace) or empty

    def planned_summers(self) -> list[str]:
        """Returns the summers of the job's plan, or none if there is no plan yet."""
        return [member["name"] for member in self.plan()["spec"]["members"] if member["role"] == "summer"]

    def steps_go_on(self, more: int = STEPS) -> None:
        """Waits until the job's plan counts `more` further steps.

        Workers report their steps to the coordinator, and the leading operator writes the count. So the count stands
        still if the training hangs, and also if no coordinator has the job, although workers may then train on."""
        end = self.plan()["status"]["steps"] + more
        try:
            wait_until(f"{self.name} makes {end} steps", lambda: self.plan()["status"]["steps"] >= end)
        except Timeout as error:
            plan = self.plan()
            raise Timeout(f"{error}; status {self.status()}, plan's {plan['status']}\n{self.events()}") from None

    def log(self, pod: str) -> str:
        return self.kubectl("logs", pod)

    def wait_log(self, pod: str, text: str, seconds: float = PATIENCE) -> None:
        def there() -> bool:
            return text in self.cluster.run("kubectl", "-n", self.namespace, "logs", pod, check=False).stdout

        wait_until(f"{pod} prints {text!r}", there, seconds)

    def patch(self, patch: dict[str, Any]) -> None:
        self.kubectl("patch", "trainingjob", self.name, "--type=merge", "-p", json.dumps(patch))

    def delete(self) -> None:
        self.kubectl("delete", "trainingjob", self.name, "--wait=true")


def milli(quantity: str) -> int:
    return int(quantity[:-1]) if quantity.endswith("m") else 1000 * int(quantity)


def room_but_for_summers(cluster: Cluster, node: str, namespace: str) -> int:
    """Returns the thousandths of a CPU that would be free on a machine without this namespace's summers."""
    free = milli(cluster.get("node", node)["status"]["allocatable"]["cpu"])
    selector = f"spec.nodeName={node},status.phase=Running"
    for each in json.loads(cluster.kubectl("get", "pods", "-A", "--field-selector", selector, "-o", "json"))["items"]:
        metadata = each["metadata"]
        if metadata["namespace"] == namespace and metadata["labels"].get("gleaner.dev/role") == "summer":
            continue
        asked = [container.get("resources", {}).get("requests", {}) for container in each["spec"]["containers"]]
        free -= sum(milli(requests.get("cpu", "0")) for requests in asked)
    return free


def owners(cluster: Cluster, node: str, namespace: str, spare: int = 0) -> dict[str, Any]:
    """Returns a pod that requests all CPUs that would be free without this namespace's summers, less `spare`
    thousandths."""
    asking = pod("owners", ["sleep", "100000"], namespace=namespace)
    asking["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
    asked = {"cpu": f"{room_but_for_summers(cluster, node, namespace) - spare}m"}
    asking["spec"]["containers"][0]["resources"] = {"requests": asked}
    return asking


def apply_file(cluster: Cluster, path: Path, namespace: str, name: str) -> Job:
    """Applies the file as a user would. Returns the job in it."""
    cluster.kubectl("apply", "-n", namespace, "-f", str(path))
    return Job(cluster, name, namespace)


def submit(
    cluster: Cluster,
    namespace: str,
    name: str,
    command: list[str],
    replicas: int = 1,
    communication: Optional[dict[str, Any]] = None,
    run_policy: Optional[dict[str, Any]] = None,
    container: Optional[dict[str, Any]] = None,
    pod: Optional[dict[str, Any]] = None,
) -> Job:
    """Creates a job that runs `command` in the example image."""
    main = {
        "name": "main",
        "image": "gleaner-example:0.1.0",
        "command": command,
        "resources": {"requests": {"cpu": "50m", "memory": "32Mi"}},
        **(container or {}),
    }
    spec: dict[str, Any] = {"terminationGracePeriodSeconds": 1, "containers": [main], **(pod or {})}
    cluster.apply({
        "apiVersion": "gleaner.dev/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "workers": {"replicas": replicas, "template": {"spec": spec}},
            "communication": communication or {},
            "runPolicy": run_policy or {},
        },
    })  # fmt: skip
    return Job(cluster, name, namespace)
