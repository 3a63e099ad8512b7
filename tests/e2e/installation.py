"""The release of the chart in the cluster, and all other objects of Gleaner."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from lab.cluster import Cluster
from product import CHART, SYSTEM, VALUES

RELEASE = "gleaner"
# Kinds that an uninstallation leaves: CRDs, their objects, and the namespace, which the chart did not create.
OF_THE_CRDS = ("CustomResourceDefinition", "APIService", "Namespace")


def helm(cluster: Cluster, *arguments: str) -> str:
    return cluster.run("helm", "--namespace", SYSTEM, *arguments).stdout


def upgrade(cluster: Cluster, chart: Path, values: dict[str, str]) -> None:
    """Upgrades the release to the given chart, and waits until everything is Ready."""
    settings = [f"--set={name}={value}" for name, value in {**VALUES, **values}.items()]
    helm(cluster, "upgrade", RELEASE, str(chart), "--wait", "--timeout=8m", *settings)


def installed(cluster: Cluster) -> bool:
    return RELEASE in helm(cluster, "list", "--short").split()


@contextlib.contextmanager
def as_before(cluster: Cluster, folder: Path) -> Iterator[None]:
    """Restores the release at the end of the with-statement: its values if it was installed before, else its
    absence."""
    values = folder / "values.yaml"
    was_there = installed(cluster)
    if was_there:
        values.write_text(helm(cluster, "get", "values", RELEASE, "-o", "yaml"))
    try:
        yield
    finally:
        if was_there:
            wanted = ("upgrade", "--install", RELEASE, str(CHART), "-f", str(values), "--wait", "--timeout=8m")
            helm(cluster, *wanted, "--create-namespace")
        else:
            helm(cluster, "uninstall", RELEASE, "--ignore-not-found", "--wait")


def objects_of_ours(cluster: Cluster) -> set[str]:
    """Returns all objects in Gleaner's namespace or with its name, except CRDs, custom objects, Events, and the
    Secret of the operator, which stays when the release is uninstalled."""
    kinds = cluster.kubectl("api-resources", "--verbs=list", "-o", "name").split()
    wanted = [kind for kind in kinds if not kind.startswith("events") and not kind.endswith("gleaner.dev")]
    columns = "KIND:.kind,NAMESPACE:.metadata.namespace,NAME:.metadata.name"
    listing = cluster.kubectl("get", ",".join(wanted), "-A", "--no-headers", "-o", f"custom-columns={columns}")
    found = set()
    for kind, namespace, name in (line.split() for line in listing.splitlines()):
        given = name in ("default", "kube-root-ca.crt") or kind in (
            "CustomResourceDefinition",
            "APIService",
            "Namespace",
        )
        given = given or (kind, name) == ("Secret", "gleaner-operator")
        if (namespace == SYSTEM or "gleaner" in name) and not given:
            found.add(f"{kind} {namespace}/{name}")
    return found


def wait_until_gone(cluster: Cluster, seconds: float = 240) -> set[str]:
    """Waits until no object of Gleaner is left. Returns the objects that are left after `seconds`."""
    deadline = time.monotonic() + seconds
    while (left := objects_of_ours(cluster)) and time.monotonic() < deadline:
        time.sleep(1)
    return left
