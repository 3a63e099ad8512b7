"""Pods for tests: a shell, and with it the node's own /usr, so that they run python3 without an image of their own."""

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
    """It is not restarted, and leaves at once when it is told to."""
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
