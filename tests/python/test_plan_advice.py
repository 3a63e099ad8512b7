"""Tests the strategies, changes and prices that `gleaner plan --topology` compares."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from conftest import GLEANER
from test_plan import plan, run

# 16 workers and 6 summers in two racks, whose uplinks carry half of what their hosts can send.
MEMBERS = ["--workers", 16, "--summers", 6, "--bytes", "350MB"]
NETWORK = ["--topology", "racks:2x11", "--bandwidth", "25Gbit", "--uplink", "100Gbit"]


def ways(found: dict) -> dict[tuple[str, int], float]:
    return {(way["strategy"], way["summers"]): way["seconds"] for way in found["strategies"]}


def test_members_are_balanced_over_racks_unless_told() -> None:
    text = run(*NETWORK, *MEMBERS).stdout
    assert text.startswith("rack-0: workers 0 to 7, summers 0, 2, 4; rack-1: workers 8 to 15, summers 1, 3, 5\n")
    in_order = run(*NETWORK, *MEMBERS, "--placement", "in-order").stdout
    assert in_order.startswith("rack-0: workers 0 to 10; rack-1: workers 11 to 15, summers 0 to 5\n")


def test_the_answer_names_the_fastest_way_and_what_helps() -> None:
    found = plan(*NETWORK, *MEMBERS)
    by_way = ways(found)
    assert by_way["summers", 6] == pytest.approx(found["seconds"], rel=0.03)
    assert set(range(7)) == {summers for strategy, summers in by_way if strategy == "summers"}
    assert by_way["ring", 0] < 0.95 * by_way["summers", 6]
    assert [way["seconds"] for way in found["strategies"]] == pytest.approx(sorted(by_way.values()), rel=2e-3)
    assert next(k for strategy, k in by_way if strategy == "summers") == 0, "all are as slow, so none is best"
    changes = {change["change"]: change["seconds"] for change in found["changes"]}
    assert "one more summer" not in changes, "the uplinks bind"
    assert changes["uplinks twice as fast"] < 0.8 * min(by_way.values())


def test_changes_have_prices(tmp_path: Path) -> None:
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({"worker": 10000, "summer": 1000, "nic": 100, "switch_port": 100, "cable": 10}))
    found = plan(*NETWORK, *MEMBERS, "--prices", prices)
    price = {(way["strategy"], way["summers"]): way["price"] for way in found["strategies"]}
    port = 210 + 420
    assert price["ring", 0] == 16 * (10000 + port)
    assert price["summers", 6] == 16 * (10000 + port) + 6 * (1000 + port)
    uplinks = next(change for change in found["changes"] if change["change"] == "uplinks twice as fast")
    machines = 16 * 10000 + uplinks["summers"] * 1000
    assert uplinks["price"] == machines + (16 + uplinks["summers"]) * (210 + 2 * 420)
    assert "PER STEP" in run(*NETWORK, *MEMBERS, "--prices", prices).stdout


def report(command: str, *flags: object) -> dict:
    done = subprocess.run(
        [GLEANER, command, *map(str, (*NETWORK, *flags, "-o", "json"))], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_plan_strategies_and_sim_give_one_answer() -> None:
    by_way = ways(plan(*NETWORK, *MEMBERS))
    compared = report("strategies", "--summers", 6, "--sizes", "350MB")["strategies"]
    by_strategy = {each["strategy"]: each["seconds"][0] for each in compared if not each["stages"]}
    simulated = {
        "summers": report("sim", "--algorithm", "summers", "--ranks", 16, "--summers", 6, "--bytes", "350MB"),
        "ring": report("sim", "--algorithm", "ring", "--bytes", "350MB", "--partition-bytes", "plan", "--ranks", 16),
    }
    for strategy, summers in (("summers", 6), ("ring", 0)):
        seconds = by_way[strategy, summers]
        assert by_strategy[strategy] == pytest.approx(seconds, rel=0.03)
        assert simulated[strategy]["seconds"] == pytest.approx(seconds, rel=0.03)
        assert simulated[strategy]["bound_seconds"] <= seconds
