"""The objects that the benchmark creates in the cluster, and the configuration of kwok."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

from .client import Request

NAMESPACE = "default"
PROFILES = "/apis/gleaner.dev/v1alpha1/nodeprofiles"
JOBS = f"/apis/gleaner.dev/v1alpha1/namespaces/{NAMESPACE}/trainingjobs"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
GBIT = 1_000_000_000


def nodes(count: int) -> Iterator[Request]:
    for i in range(count):
        meta = {
            "name": f"node-{i}",
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {"kubernetes.io/hostname": f"node-{i}", "topology.kubernetes.io/zone": f"rack-{i // 40}"},
        }
        yield "POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": meta}


def profiles(count: int) -> Iterator[Request]:
    for i in range(count):
        yield (
            "POST",
            PROFILES,
            {"apiVersion": "gleaner.dev/v1alpha1", "kind": "NodeProfile", "metadata": {"name": f"node-{i}"}},
        )


def profile_statuses(count: int) -> Iterator[Request]:
    """Yields NodeProfile statuses as an agent writes them, for half idle machines with one interface of 25 Gbit/s."""
    for i in range(count):
        status = {
            "observedTime": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "agentVersion": "benchmark",
            "cpus": "64",
            "memoryBytes": 256 << 30,
            "numaNodes": 2,
            "nicCount": 1,
            "nics": [{"name": "eth0", "bitsPerSecond": 25 * GBIT, "speedSource": "Sysfs", "defaultRoute": True}],
            "gpuCount": 0,
            "bitsPerSecond": 25 * GBIT,
            "speed": "25 Gbit/s",
            "speedSource": "Sysfs",
            "usedCpus": "32",
            "usedBitsPerSecond": 12 * GBIT,
            "spare": {"cpus": "30", "memoryBytes": 64 << 30, "bitsPerSecond": 11 * GBIT, "bandwidth": "11 Gbit/s"},
        }
        patch = {"status": status}
        yield "PATCH", f"{PROFILES}/node-{i}/status", patch


def jobs(name: str, count: int) -> Iterator[Request]:
    container = {"name": "main", "image": "example:1", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    spec = {
        # No member joins the coordinator, because the pods are simulated. A long deadline keeps the jobs from failing.
        "runPolicy": {"startDeadlineSeconds": 86400},
        "workers": {"replicas": 1, "template": {"spec": {"containers": [container]}}},
    }
    for i in range(count):
        meta = {"name": f"{name}-{i}", "namespace": NAMESPACE}
        yield (
            "POST",
            JOBS,
            {"apiVersion": "gleaner.dev/v1alpha1", "kind": "TrainingJob", "metadata": meta, "spec": spec},
        )


def stage(name: str, kind: str, conditions: dict[str, tuple[str, str]], following: dict[str, Any]) -> dict[str, Any]:
    """Returns a Stage of kwok. `conditions` maps a place in the object to an operator and its value ("": none)."""
    expressions = [
        {"key": key, "operator": how, **({"values": [value]} if value else {})}
        for key, (how, value) in conditions.items()
    ]
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": expressions},
            "next": following,
        },
    }


READY = '.status.conditions.[] | select( .type == "Ready" ) | .status'

NODE_STATUS = """
conditions:
- {type: Ready, status: "True", reason: KubeletReady, message: "", lastHeartbeatTime: {{ Now | Quote }},
   lastTransitionTime: {{ Now | Quote }}}
addresses:
- {type: InternalIP, address: {{ NodeIP | Quote }}}
allocatable: {cpu: "64", memory: 256Gi, pods: "110"}
capacity: {cpu: "64", memory: 256Gi, pods: "110"}
phase: Running
"""

POD_STATUS = """
conditions:
- {type: Initialized, status: "True", lastTransitionTime: {{ Now | Quote }}}
- {type: Ready, status: "True", lastTransitionTime: {{ Now | Quote }}}
- {type: ContainersReady, status: "True", lastTransitionTime: {{ Now | Quote }}}
containerStatuses:
{{ range .spec.containers }}
- {name: {{ .name | Quote }}, image: {{ .image | Quote }}, ready: true, restartCount: 0,
   state: {running: {startedAt: {{ Now | Quote }}}}}
{{ end }}
podIP: {{ index (PodIPsWith .spec.nodeName false .metadata.uid .metadata.name .metadata.namespace) 0 | Quote }}
phase: Running
startTime: {{ Now | Quote }}
"""


def kwok_configuration() -> str:
    """Returns kwok's configuration, by which nodes are ready at once and pods run as soon as they are bound."""
    configuration = {
        "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
        "kind": "KwokConfiguration",
        "options": {"podPlayStageParallelism": 16, "nodePlayStageParallelism": 16},
    }
    # kwok handles a pod only when the pod is bound to one of kwok's nodes, so the stages need no condition for that.
    documents = [
        configuration,
        stage("node-ready", "Node", {READY: ("NotIn", "True")}, {"statusTemplate": NODE_STATUS}),
        stage(
            "pod-running",
            "Pod",
            {".metadata.deletionTimestamp": ("DoesNotExist", ""), ".status.phase": ("In", "Pending")},
            {"statusTemplate": POD_STATUS},
        ),
        stage("pod-gone", "Pod", {".metadata.deletionTimestamp": ("Exists", "")}, {"delete": True}),
    ]
    return "\n---\n".join(json.dumps(document) for document in documents)
