"""Tests that the chart fits into a platform: its users' labels and annotations, and charts that depend on it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from charts.gleaner_chart import (
    CHART,
    EVERYTHING,
    KUBERNETES,
    NAMESPACE,
    documents,
    pod_templates,
    program,
    rendered,
    run,
    template,
)

PART_OF = r"app\.kubernetes\.io/part-of"
LABELLED = ("podLabels", "dashboards.labels", "serviceMonitor.labels")
MAPS = (*LABELLED, "podAnnotations", "operator.nodeSelector", "agent.nodeSelector", "schedulerExtender.nodeSelector")


def labelled_by(objects: list[dict[str, Any]], value: str) -> list[dict[str, str]]:
    """Returns the labels of every object to which `value` adds labels."""
    if value == "podLabels":
        return [pod["metadata"]["labels"] for _, pod in pod_templates(objects)]
    dashboards = [thing for thing in objects if thing["metadata"]["name"].startswith("gleaner-dashboard-")]
    monitoring = [thing for thing in objects if thing["apiVersion"].startswith("monitoring.coreos.com/")]
    return [thing["metadata"]["labels"] for thing in (dashboards if value == "dashboards.labels" else monitoring)]


@pytest.mark.parametrize("value", MAPS)
@pytest.mark.parametrize("key", [PART_OF, r"helm\.sh/chart", r"kubernetes\.io/os", "grafana_folder", "team"])
def test_maps_of_users_repeat_no_key(value: str, key: str) -> None:
    assert rendered({**EVERYTHING, f"{value}.{key}": "ml"})


@pytest.mark.parametrize("value", LABELLED)
def test_labels_of_users_replace_those_of_the_chart(value: str) -> None:
    objects = rendered({**EVERYTHING, f"{value}.{PART_OF}": "ml", f"{value}.team": "a"})
    labelled = labelled_by(objects, value)
    assert labelled
    assert all(labels["app.kubernetes.io/part-of"] == "ml" and labels["team"] == "a" for labels in labelled)
    selectors = {pod["metadata"]["labels"]["app.kubernetes.io/name"]: pod for _, pod in pod_templates(objects)}
    for workload in [thing for thing in objects if thing["kind"] in ("Deployment", "DaemonSet")]:
        wanted = workload["spec"]["selector"]["matchLabels"]
        pod = selectors[wanted["app.kubernetes.io/name"]]
        assert wanted.items() <= pod["metadata"]["labels"].items()


@pytest.mark.parametrize("value", LABELLED)
@pytest.mark.parametrize("key", ["app.kubernetes.io/name", "app.kubernetes.io/instance", "gleaner.dev/job"])
def test_labels_that_selectors_use_are_refused(value: str, key: str) -> None:
    escaped = key.replace(".", "\\.")
    done = template({**EVERYTHING, f"{value}.{escaped}": "mine"})
    assert done.returncode != 0
    assert f"{value} may not set the label {key}, because selectors use it" in done.stderr


def test_files_of_the_chart_repeat_no_key() -> None:
    files = [path for path in CHART.rglob("*.yaml") if "templates" not in path.parts]
    assert len(files) > 4
    for path in files:
        assert documents(path.read_text()), path


@pytest.fixture
def parent(tmp_path: Path) -> Path:
    """Returns another chart, which a condition and a tag let depend on this one."""
    dependency = {"name": "gleaner", "version": "0.1.0", "condition": "gleaner.enabled", "tags": ["training"]}
    chart = {"apiVersion": "v2", "name": "platform", "version": "1.0.0", "dependencies": [dependency]}
    (tmp_path / "Chart.yaml").write_text(yaml.safe_dump(chart))
    shutil.copytree(CHART, tmp_path / "charts" / "gleaner")
    return tmp_path


@pytest.mark.parametrize(
    ("values", "is_installed"),
    [
        ("gleaner.enabled=true", True),
        ("gleaner.enabled=false", False),
        ("tags.training=false", False),
        ("tags.training=true,gleaner.tags.other=true,global.registry=lab,gleaner.podLabels.team=a", True),
    ],
)
def test_other_charts_can_depend_on_the_chart(parent: Path, values: str, is_installed: bool) -> None:
    place = ("--namespace", NAMESPACE, "--kube-version", KUBERNETES)
    done = run(program("helm"), "template", "lab", str(parent), *place, "--set", values)
    assert done.returncode == 0, done.stderr
    assert ("gleaner-operator" in {name for name, _ in pod_templates(documents(done.stdout))}) == is_installed


def test_the_condition_of_a_parent_is_a_boolean() -> None:
    done = template({"enabled": "perhaps"})
    assert done.returncode != 0
    assert "/enabled" in done.stderr
