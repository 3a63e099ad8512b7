"""Provides a real API server with Gleaner's CRDs, for tests of the objects that it accepts and refuses."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import ssl
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import yaml
from conftest import BUILD, ROOT, TIMEOUT  # importing conftest also makes the package `lab` importable

# isort: split
from lab.control_plane import ControlPlane
from lab.processes import binaries

CRDS = sorted((ROOT / "crds").glob("*.yaml"))
TOPOLOGY = ROOT / "crds" / "topology.yaml"
SAMPLE = BUILD / "tests" / "api_sample"
GROUP = "/apis/gleaner.dev/v1alpha1"
CRD_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PLURALS = {
    "TrainingJob": "trainingjobs",
    "NodeProfile": "nodeprofiles",
    "Topology": "topologies",
    "ReductionPlan": "reductionplans",
}
CLUSTER_SCOPED = ("NodeProfile", "Topology")


@dataclass
class Answer:
    code: int
    body: dict[str, Any]
    warnings: list[str]

    @property
    def ok(self) -> bool:
        return self.code < 300

    @property
    def message(self) -> str:
        return self.body.get("message", "")


class Api:
    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._programs = binaries("kube")
        self._host, _, port = plane.server.removeprefix("https://").partition(":")
        self._port = int(port)
        self._tls = ssl.create_default_context(cafile=str(plane.describe()["ca"]))

    @property
    def server(self) -> str:
        return self._plane.server

    @property
    def kubeconfig(self) -> Path:
        return self._plane.kubeconfig

    def ask(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Answer:
        connection = http.client.HTTPSConnection(self._host, self._port, timeout=TIMEOUT, context=self._tls)
        with contextlib.closing(connection):
            headers = {"Authorization": f"Bearer {self._plane.admin_token}", "Content-Type": kind}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            warnings = answer.headers.get_all("Warning") or []
            text = answer.read()
            body = json.loads(text) if text.startswith(b"{") else {"message": text.decode()}
            return Answer(answer.status, body, warnings)

    def path(self, manifest: dict[str, Any], name: Optional[str] = None) -> str:
        """Returns the path of a manifest's collection, or of the object `name` in it."""
        namespace = "" if manifest["kind"] in CLUSTER_SCOPED else f"/namespaces/{namespace_of(manifest)}"
        return f"{GROUP}{namespace}/{PLURALS[manifest['kind']]}" + (f"/{name}" if name else "")

    def create(self, manifest: dict[str, Any], query: str = "") -> Answer:
        return self.ask("POST", self.path(manifest) + "?fieldValidation=Strict" + query, manifest)

    def get(self, manifest: dict[str, Any]) -> dict[str, Any]:
        answer = self.ask("GET", self.path(manifest, manifest["metadata"]["name"]))
        assert answer.ok, answer.message
        return answer.body

    def patch(self, manifest: dict[str, Any], change: dict[str, Any], subresource: str = "") -> Answer:
        path = self.path(manifest, manifest["metadata"]["name"]) + subresource
        return self.ask("PATCH", path, change, "application/merge-patch+json")

    def delete(self, manifest: dict[str, Any]) -> None:
        self.ask("DELETE", self.path(manifest, manifest["metadata"]["name"]))

    def kubectl(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "KUBECONFIG": str(self._plane.kubeconfig), "HOME": str(self._plane.dir)}
        command = [str(self._programs / "kubectl"), *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=TIMEOUT, env=environment)

    def install(self) -> list[Answer]:
        """Creates the CRDs and waits until the server serves them."""
        answers = [self.ask("POST", CRD_PATH, yaml.safe_load(path.read_text())) for path in CRDS]
        end = time.monotonic() + TIMEOUT
        for plural in PLURALS.values():
            while not self.ask("GET", f"{GROUP}/{plural}").ok:
                assert time.monotonic() < end, f"{plural} is not served"
                time.sleep(0.05)
        return answers


def namespace_of(manifest: dict[str, Any]) -> str:
    return manifest["metadata"].get("namespace", "default")


def why_not() -> Optional[str]:
    """Returns the reason why this machine cannot run a real API server, or None if it can."""
    for command in ("etcd", "openssl", "setpriv"):
        if shutil.which(command) is None:
            return f"{command} is not installed: scripts/bootstrap e2e installs it"
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "gleaner" / "e2e"
    if shutil.which("go") is None and not list(cache.glob("kube-*/kube")):
        return "Kubernetes is not built yet and go is not installed: scripts/bootstrap e2e installs it"
    return None


@contextlib.contextmanager
def real_api() -> Iterator[Api]:
    """Starts an API server without Gleaner's CRDs; Api.install() creates them. Only fixtures that use the fixture
    `kubernetes` may call this."""
    with ControlPlane() as plane:
        yield Api(plane)


def small_job(name: str = "small", **spec: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "train", "image": "example:1"}]}}
    return {
        "apiVersion": "gleaner.dev/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": name},
        "spec": {"workers": {"replicas": 4, "template": template}, **spec},
    }


def changed(manifest: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Returns a copy of the manifest in which the field at `path` (such as spec.workers.replicas) has `value`."""
    copy = json.loads(json.dumps(manifest))
    *above, last = path.split(".")
    at = copy
    for part in above:
        at = at[int(part)] if isinstance(at, list) else at.setdefault(part, {})
    at[last] = value
    return copy


def sample(*arguments: str, stdin: str = "") -> dict[str, Any]:
    """Returns an object that the C++ code writes."""
    assert SAMPLE.exists(), f"this needs {SAMPLE}; build with scripts/build, or set GLEANER_BUILD"
    done = subprocess.run([str(SAMPLE), *arguments], input=stdin, capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def schema_of(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text())["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def rules_in(schema: dict[str, Any]) -> Iterator[str]:
    """Yields the messages of all validation rules in a schema, except rules for changes."""
    for rule in schema.get("x-kubernetes-validations", []):
        if "oldSelf" not in rule["rule"]:
            yield " ".join(rule["message"].split())
    for part in [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]:
        if isinstance(part, dict):
            yield from rules_in(part)
