"""Pods for tests. Their image has a shell, and they mount the node's /usr, so that they can run python3."""

from __future__ import annotations

from typing import Any, Optional

from .template import PAUSE


def pod(
    name: str,
    command: list[str],
    node: str = "",
    annotations: Optional[dict[str, str]] = None,
    namespace: str = "default",
    labels: Optional[dict[str, str]] = None,
) -> dict[str, Any]:
    """Returns a pod that is never restarted and has no termination grace period."""
    container = {
        "name": "main",
        "image": PAUSE,
        "command": command,
        "env": [{"name": "PATH", "value": "/bin:/usr/bin"}, {"name": "PYTHONUNBUFFERED", "value": "1"}],
        "volumeMounts": [{"name": "usr", "mountPath": "/usr", "readOnly": True}],
    }
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
        "volumes": [{"name": "usr", "hostPath": {"path": "/usr"}}],
    }
    if node:
        spec["nodeName"] = node
    metadata = {"name": name, "namespace": namespace, "annotations": annotations or {}, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def service(name: str, port: int, labels: dict[str, str], namespace: str = "default") -> dict[str, Any]:
    spec = {"selector": labels, "ports": [{"port": port, "targetPort": port}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace}, "spec": spec}
