"""Tests dashboards and alerts: Prometheus parses them, their metrics are documented, and alerts fire in the right
cases only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from charts.gleaner_chart import (
    CHART,
    EVERYTHING,
    alert_rules,
    dashboards,
    documented_metrics,
    metric_names,
    one,
    panel_expressions,
    prometheus_program,
    rendered,
    run,
)

VARIABLES = {"namespace": "team", "job": "digits"}
ALERTS = sorted((CHART / "alerts").glob("*.yaml"))


def expressions() -> list[tuple[str, str]]:
    panels = [
        (f"{name}: {title}", expression)
        for name, dashboard in dashboards().items()
        for title, expression in panel_expressions(dashboard, VARIABLES)
    ]
    return panels + [(rule["alert"], rule["expr"]) for rule in alert_rules()]


def test_prometheus_parses_every_expression(tmp_path: Path) -> None:
    """Checks expressions as recording rules, since promtool checks expressions only in rule files."""
    rules = [{"record": f"panel:{number}", "expr": expression} for number, (_, expression) in enumerate(expressions())]
    assert len(rules) > 60
    path = tmp_path / "panels.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    done = run(prometheus_program("promtool"), "check", "rules", str(path))
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_variable_is_left_in_an_expression() -> None:
    assert [title for title, expression in expressions() if "$" in expression and "$labels" not in expression] == []


def test_every_metric_is_documented() -> None:
    promised = documented_metrics()
    asked = {(title, name) for title, expression in expressions() for name in metric_names(expression)}
    assert asked
    assert {(title, name) for title, name in asked if name not in promised} == set()


@pytest.mark.parametrize("name", dashboards())
def test_dashboards_are_well_formed(name: str) -> None:
    dashboard = dashboards()[name]
    assert dashboard["uid"] == f"gleaner-{name}"
    assert dashboard["templating"]["list"][0]["type"] == "datasource"
    identifiers = [panel["id"] for panel in dashboard["panels"]]
    assert len(identifiers) == len(set(identifiers))
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24, panel["title"]
        assert not cells & taken, f"panel {panel['title']} overlaps another panel"
        taken |= cells
        if panel["type"] != "row":
            assert panel["targets"], panel["title"]
            assert all(target["datasource"] == panel["datasource"] for target in panel["targets"])


def test_config_maps_contain_the_dashboards_unchanged() -> None:
    objects = rendered({"dashboards.labels.team": "a"})
    for name, dashboard in dashboards().items():
        config_map = one(objects, "ConfigMap", f"gleaner-dashboard-{name}")
        assert config_map["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert config_map["metadata"]["labels"]["team"] == "a"
        assert json.loads(config_map["data"][f"gleaner-{name}.json"]) == dashboard
    assert not [
        thing for thing in rendered({"dashboards.enabled": "false"}) if "dashboard" in thing["metadata"]["name"]
    ]


def test_the_prometheus_rule_contains_the_alerts_unchanged() -> None:
    groups = one(rendered(EVERYTHING), "PrometheusRule", "gleaner")["spec"]["groups"]
    assert groups == [group for path in ALERTS for group in yaml.safe_load(path.read_text())["groups"]]


def test_alerts_have_a_runbook() -> None:
    names = [rule["alert"] for rule in alert_rules()]
    assert len(names) == len(set(names))
    for rule in alert_rules():
        assert rule["labels"]["severity"] in ("info", "warning", "critical"), rule["alert"]
        assert {"summary", "description", "runbook"} == set(rule["annotations"]), rule["alert"]
        assert rule["annotations"]["runbook"].startswith("1. "), rule["alert"]


JOB = '{namespace="team", trainingjob="digits"}'
CHANGE = '{namespace="team", trainingjob="digits", change="SummerLost", reason="Failed"}'
RUNNING = {"series": 'gleaner_job_phase{namespace="team", trainingjob="digits", phase="Running"}', "values": "1x120"}


def because(reason: str) -> str:
    return f'{{namespace="team", trainingjob="digits", reason="{reason}"}}'


def series(name: str, values: str) -> dict[str, str]:
    return {"series": name, "values": values}


# The alert's name, series with one value per minute, the time to evaluate, and the labels of the firing alert or None.
Case = tuple[str, list[dict[str, str]], str, Any]
CASES: list[Case] = [
    (
        "GleanerEfficiencyLow",
        [series(f"gleaner_job_efficiency_ratio{JOB}", "0.4x120"), RUNNING],
        "11m",
        {"namespace": "team", "trainingjob": "digits"},
    ),
    ("GleanerEfficiencyLow", [series(f"gleaner_job_efficiency_ratio{JOB}", "0.4x120"), RUNNING], "9m", None),
    ("GleanerEfficiencyLow", [series(f"gleaner_job_efficiency_ratio{JOB}", "0.9x120"), RUNNING], "60m", None),
    ("GleanerEfficiencyLow", [series(f"gleaner_job_efficiency_ratio{JOB}", "0.4x120")], "60m", None),
    # One good minute in between, as when a summer is lost and comes back.
    ("GleanerEfficiencyLow", [series(f"gleaner_job_efficiency_ratio{JOB}", "0.4x7 0.9 0.4x7"), RUNNING], "15m", None),
    # Jobs without an efficiency have no series: they are latency-bound, or have a link of unknown speed.
    ("GleanerEfficiencyLow", [series(f"gleaner_job_efficiency_ratio{JOB}", "0.4x7 stale"), RUNNING], "15m", None),
    (
        "GleanerJobStuckStarting",
        # The job changes between phases in which it does not run, which counts as one wait.
        [
            series('gleaner_job_phase{namespace="team", trainingjob="digits", phase="Starting"}', "1x9 stale"),
            series('gleaner_job_phase{namespace="team", trainingjob="digits", phase="Pending"}', "_x9 1x60"),
        ],
        "16m",
        {"namespace": "team", "trainingjob": "digits"},
    ),
    ("GleanerJobStuckStarting", [RUNNING], "60m", None),
    (
        "GleanerJobRestarting",
        [series(f"gleaner_job_attempt{JOB}", "0x10 1x10 2x10")],
        "29m",
        {"namespace": "team", "trainingjob": "digits"},
    ),
    ("GleanerJobRestarting", [series(f"gleaner_job_attempt{JOB}", "0x10 1x50")], "29m", None),
    (
        "GleanerJobReconcileFailing",
        [series(f"gleaner_job_reconcile_failing_seconds{JOB}", "0x5 20 80 140 200")],
        "9m",
        {"namespace": "team", "trainingjob": "digits"},
    ),
    # The API server is away for half a minute now and then.
    ("GleanerJobReconcileFailing", [series(f"gleaner_job_reconcile_failing_seconds{JOB}", "0 25 0 45 0")], "5m", None),
    (
        "GleanerJoinsRefused",
        [series('gleaner_coordinator_rejected_joins_total{job_name="team/digits/0"}', "0x5 3x30")],
        "8m",
        {"job_name": "team/digits/0"},
    ),
    (
        "GleanerJoinsRefused",
        [series('gleaner_coordinator_rejected_joins_total{job_name="team/digits/0"}', "3x60")],
        "30m",
        None,
    ),
    (
        "GleanerSummersLost",
        [series(f"gleaner_job_summer_changes_total{CHANGE}", "0+1x60")],
        "31m",
        {"namespace": "team", "trainingjob": "digits"},
    ),
    ("GleanerSummersLost", [series(f"gleaner_job_summer_changes_total{CHANGE}", "2x60")], "31m", None),
    (
        "GleanerSummerSlow",
        [series('gleaner_coordinator_slow_summers{job_name="team/digits/0"}', "0x5 1x30")],
        "17m",
        {"job_name": "team/digits/0"},
    ),
    (
        "GleanerSummerSlow",
        [series('gleaner_coordinator_slow_summers{job_name="team/digits/0"}', "1x5 0x30")],
        "17m",
        None,
    ),
    (
        "GleanerRecoverySlow",
        [
            series('gleaner_coordinator_recovery_seconds_total{job_name="team/digits/0"}', "0x5 8x30"),
            series('gleaner_coordinator_recoveries_total{job_name="team/digits/0"}', "0x5 1x30"),
        ],
        "8m",
        {"job_name": "team/digits/0"},
    ),
    (
        "GleanerRecoverySlow",
        [
            series('gleaner_coordinator_recovery_seconds_total{job_name="team/digits/0"}', "0x5 1x30"),
            series('gleaner_coordinator_recoveries_total{job_name="team/digits/0"}', "0x5 1x30"),
        ],
        "8m",
        None,
    ),
    (
        "GleanerPlanChangesGivenUp",
        [series('gleaner_coordinator_given_up_changes_total{job_name="team/digits/0"}', "0+1x60")],
        "31m",
        {"job_name": "team/digits/0"},
    ),
    (
        "GleanerSummersMissing",
        [
            series(f"gleaner_job_summers_wanted{JOB}", "3x60"),
            series(f"gleaner_job_summers_planned{JOB}", "2x60"),
            RUNNING,
        ],
        "11m",
        {"namespace": "team", "trainingjob": "digits"},
    ),
    (
        "GleanerSummersMissing",
        [
            series(f"gleaner_job_summers_wanted{JOB}", "3x60"),
            series(f"gleaner_job_summers_planned{JOB}", "3x60"),
            RUNNING,
        ],
        "30m",
        None,
    ),
    (
        "GleanerAutoscalerBlind",
        # A change from no metrics to stale metrics counts as one period without metrics.
        [
            series(f"gleaner_job_summers_reason{because('NoMetrics')}", "1x9 stale"),
            series(f"gleaner_job_summers_reason{because('StaleMetrics')}", "_x9 1x60"),
            RUNNING,
        ],
        "16m",
        {"namespace": "team", "trainingjob": "digits"},
    ),
    ("GleanerOperatorNoLeader", [], "3m", {}),
    ("GleanerOperatorNoLeader", [series('gleaner_operator_leader{pod="a"}', "0x60")], "3m", {}),
    (
        "GleanerOperatorNoLeader",
        [series('gleaner_operator_leader{pod="a"}', "0x60"), series('gleaner_operator_leader{pod="b"}', "1x60")],
        "30m",
        None,
    ),
    (
        "GleanerOperatorTwoLeaders",
        [series('gleaner_operator_leader{pod="a"}', "1x60"), series('gleaner_operator_leader{pod="b"}', "1x60")],
        "3m",
        {},
    ),
    (
        "GleanerCertificateNearEnd",
        [series('gleaner_operator_certificate_expiry_seconds{certificate="server"}', "100000x90")],
        "61m",
        {"certificate": "server"},
    ),
    (
        "GleanerCertificateNearEnd",
        [series('gleaner_operator_certificate_expiry_seconds{certificate="server"}', "2000000x90")],
        "61m",
        None,
    ),
    (
        "GleanerReconcileSlow",
        [
            series('gleaner_reconcile_seconds_bucket{controller="trainingjob", le="1"}', "0+1x60"),
            series('gleaner_reconcile_seconds_bucket{controller="trainingjob", le="5"}', "0+9x60"),
            series('gleaner_reconcile_seconds_bucket{controller="trainingjob", le="+Inf"}', "0+9x60"),
        ],
        "30m",
        {"controller": "trainingjob"},
    ),
    (
        "GleanerReconcileFailing",
        [
            series('gleaner_reconcile_seconds_count{controller="trainingjob", result="retry"}', "0+6x60"),
            series('gleaner_reconcile_seconds_count{controller="trainingjob", result="done"}', "0+4x60"),
        ],
        "30m",
        {"controller": "trainingjob"},
    ),
    (
        "GleanerReconcileFailing",
        [
            series('gleaner_reconcile_seconds_count{controller="trainingjob", result="retry"}', "0+1x60"),
            series('gleaner_reconcile_seconds_count{controller="trainingjob", result="done"}', "0+9x60"),
        ],
        "30m",
        None,
    ),
    (
        "GleanerAgentCannotPublish",
        [series('gleaner_node_profile_writes_total{node="n1", result="ok"}', "7x60")],
        "11m",
        {"node": "n1"},
    ),
    (
        "GleanerAgentCannotPublish",
        [series('gleaner_node_profile_writes_total{node="n1", result="ok"}', "0+6x60")],
        "30m",
        None,
    ),
    (
        "GleanerAgentsSilent",
        [series('gleaner_operator_node_profiles{state="stale"}', "2x60")],
        "11m",
        {"state": "stale"},
    ),
    ("GleanerNodeSpeedUnknown", [series('gleaner_node_speed_known{node="n1"}', "0x60")], "11m", {"node": "n1"}),
    ("GleanerNodeSpeedUnknown", [series('gleaner_node_speed_known{node="n1"}', "1x60")], "30m", None),
    (
        "GleanerProbesStale",
        [
            series('gleaner_node_probe_oldest_seconds{node="n1"}', "21700x60"),
            series('gleaner_node_probe_peers{node="n1"}', "7x60"),
        ],
        "16m",
        {"node": "n1"},
    ),
    # 64 peers are measured every 21 hours.
    (
        "GleanerProbesStale",
        [
            series('gleaner_node_probe_oldest_seconds{node="n1"}', "86400x60"),
            series('gleaner_node_probe_peers{node="n1"}', "64x60"),
        ],
        "60m",
        None,
    ),
    (
        "GleanerProbePeersMissing",
        [series('gleaner_node_probe_missing_peers{node="n1"}', "2x2000")],
        "25h",
        {"node": "n1"},
    ),
    (
        "GleanerProbePeersMissing",
        [series('gleaner_node_probe_missing_peers{node="n1"}', "2x700 0 2x2000")],
        "25h",
        None,
    ),
    (
        "GleanerProbesRefused",
        [series('gleaner_node_probe_refused_total{node="n1"}', "0x5 0+1x60")],
        "50m",
        {"node": "n1"},
    ),
    ("GleanerProbesRefused", [series('gleaner_node_probe_refused_total{node="n1"}', "0x10 5x60")], "50m", None),
]


def test_every_alert_has_a_case() -> None:
    assert {rule["alert"] for rule in alert_rules()} == {case[0] for case in CASES if case[3] is not None}


def promtool_test(folder: Path, case: Case, groups: list[Any], expected: list[Any]) -> str:
    """Runs a case in promtool. Returns its output, or an empty string if exactly the expected alerts fire."""
    name, inputs, when, _ = case
    (folder / "alerts.yaml").write_text(yaml.safe_dump({"groups": groups}))
    alert_test = {"eval_time": when, "alertname": name, "exp_alerts": expected}
    unit = {"interval": "1m", "input_series": inputs, "alert_rule_test": [alert_test]}
    text = {"rule_files": ["alerts.yaml"], "evaluation_interval": "1m", "tests": [unit]}
    (folder / "test.yaml").write_text(yaml.safe_dump(text))
    done = run(prometheus_program("promtool"), "test", "rules", str(folder / "test.yaml"))
    return "" if done.returncode == 0 else done.stdout + done.stderr


def alert_groups() -> list[Any]:
    return [group for path in ALERTS for group in yaml.safe_load(path.read_text())["groups"]]


@pytest.mark.parametrize("case", CASES, ids=[f"{case[0]}-{number}" for number, case in enumerate(CASES)])
def test_alerts_fire_when_they_should(tmp_path: Path, case: Case) -> None:
    severity = next(rule["labels"]["severity"] for rule in alert_rules() if rule["alert"] == case[0])
    expected = [] if case[3] is None else [{"exp_labels": {**case[3], "severity": severity}}]
    groups = alert_groups()
    for group in groups:
        for rule in group["rules"]:
            del rule["annotations"]  # promtool would compare annotations as well
    assert promtool_test(tmp_path, case, groups, expected) == ""


@pytest.mark.parametrize("case", [case for case in CASES if case[3] is not None], ids=lambda case: case[0])
def test_annotations_can_be_filled_in(tmp_path: Path, case: Case) -> None:
    """Checks the annotations that promtool prints for an unexpected alert; Prometheus would send the same."""
    text = promtool_test(tmp_path, case, alert_groups(), [])
    assert "summary=" in text, text
    assert "error expanding" not in text, text
    assert "{{" not in text, text
    for value in case[3].values():
        assert value in text.split("summary=")[1].split("runbook=")[0] or value in ("stale",), text
