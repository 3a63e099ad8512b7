"""Runs a real Prometheus in the cluster's network, configured as docs/dashboards.md says."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml
from lab.cluster import Cluster
from lab.spec import GATEWAY
from product import ROOT

sys.path.insert(0, str(ROOT / "tests"))
from charts.gleaner_chart import CHART, prometheus_program

PORT = 9090
URL = f"http://{GATEWAY}:{PORT}"  # as pods reach it

# A program that reads paths, one per line, requests each from Prometheus, and prints each answer as one line of JSON.
ASK = f"""
import sys, urllib.error, urllib.request
for path in sys.stdin:
    try:
        print(urllib.request.urlopen("http://127.0.0.1:{PORT}" + path.strip(), timeout=20).read().decode())
    except urllib.error.HTTPError as error:
        print(error.read().decode())
    except OSError as error:
        print('{{"status": "away"}}')
"""


class Prometheus:
    """The Prometheus server, and queries to it."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._cluster = cluster
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(configuration(folder)))
        discover(cluster, folder)
        command = [
            prometheus_program("prometheus"),
            f"--config.file={folder / 'prometheus.yaml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=0.0.0.0:{PORT}",
        ]
        with (folder / "prometheus.log").open("w") as log:
            self._process = subprocess.Popen(
                cluster.command(*command), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self._folder = folder
        self._log = folder / "prometheus.log"

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def discover(self) -> None:
        discover(self._cluster, self._folder)

    def ask(self, paths: list[str]) -> list[dict[str, Any]]:
        assert self._process.poll() is None, self._log.read_text()[-2000:]
        done = self._cluster.run("/usr/bin/python3", "-c", ASK, text="\n".join(paths) + "\n")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def ready(self) -> bool:
        return self.ask(["/api/v1/status/runtimeinfo"])[0]["status"] == "success"

    def sees(self, expression: str) -> bool:
        self.discover()
        return self.ready() and all(self.values([expression]))

    def values(self, expressions: list[str]) -> list[list[float]]:
        """Returns the current value of each expression: the values of its series, without NaN."""
        answers = self.ask([f"/api/v1/query?query={quote(expression, safe='')}" for expression in expressions])
        found = []
        for expression, answer in zip(expressions, answers):
            assert answer["status"] == "success", f"{expression}: {answer}"
            data = answer["data"]
            points = [data["result"]] if data["resultType"] == "scalar" else [each["value"] for each in data["result"]]
            found.append([value for value in (float(point[1]) for point in points) if not math.isnan(value)])
        return found


def documented_scrapes() -> list[dict[str, Any]]:
    text = (ROOT / "docs" / "dashboards.md").read_text()
    block = re.search(r"```yaml\n(scrape_configs:.*?)```", text, re.DOTALL)
    assert block, "docs/dashboards.md shows no scrape_configs"
    return yaml.safe_load(block.group(1))["scrape_configs"]


def configuration(folder: Path) -> dict[str, Any]:
    """Returns the configuration of docs/dashboards.md, but with shorter intervals and with targets from files.

    Debian's Prometheus is built without discovery of pods in Kubernetes, so discover() writes the targets.
    """
    scrapes = documented_scrapes()
    for scrape in scrapes:
        assert [discovery["role"] for discovery in scrape.pop("kubernetes_sd_configs")] == ["pod"]
        scrape["file_sd_configs"] = [{"files": [str(folder / f"{scrape['job_name']}.json")]}]
    return {
        "global": {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "5s"},
        "rule_files": [str(path) for path in sorted((CHART / "alerts").glob("*.yaml"))],
        "scrape_configs": scrapes,
    }


def discover(cluster: Cluster, folder: Path) -> None:
    """Writes the targets that Prometheus' Kubernetes discovery with role "pod" finds: one per declared port of a
    pod."""
    pods = json.loads(cluster.kubectl("get", "pods", "-A", "-o", "json"))["items"]
    for scrape in documented_scrapes():
        namespaces = scrape["kubernetes_sd_configs"][0].get("namespaces", {}).get("names")
        targets = [
            target
            for pod in pods
            if namespaces is None or pod["metadata"]["namespace"] in namespaces
            for target in targets_of(pod)
        ]
        half = folder / "half"
        half.write_text(json.dumps(targets))
        half.rename(folder / f"{scrape['job_name']}.json")


def targets_of(pod: dict[str, Any]) -> Iterator[dict[str, Any]]:
    address = pod["status"].get("podIP")
    if not address or pod["status"]["phase"] in ("Succeeded", "Failed"):
        return
    labels = {
        "__meta_kubernetes_namespace": pod["metadata"]["namespace"],
        "__meta_kubernetes_pod_name": pod["metadata"]["name"],
    }
    for name, value in pod["metadata"].get("labels", {}).items():
        plain = re.sub(r"[^a-zA-Z0-9_]", "_", name)
        labels[f"__meta_kubernetes_pod_label_{plain}"] = value
        labels[f"__meta_kubernetes_pod_labelpresent_{plain}"] = "true"
    for container in pod["spec"]["containers"]:
        for port in container.get("ports", []):
            named = {"__meta_kubernetes_pod_container_port_name": port.get("name", "")}
            yield {"targets": [f"{address}:{port['containerPort']}"], "labels": {**labels, **named}}
