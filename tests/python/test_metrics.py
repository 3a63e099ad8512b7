"""Tests the metrics that coordinator, summer and worker serve while a job runs: they are well-formed and correct."""

from __future__ import annotations

import re
import shutil
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from conftest import free_address, job, wait_until


def scrape(address: str) -> str:
    """Returns the metrics text, or an empty string if the server does not listen yet."""
    try:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as answer:
            return answer.read().decode()
    except (urllib.error.URLError, ConnectionError):
        return ""


def value(text: str, name: str) -> float:
    found = re.search(rf"^{name}(?:{{[^}}]*}})? ([-+.e\d]+)$", text, re.MULTILINE)
    return float(found.group(1)) if found else 0.0


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool (package prometheus) is not here")
def test_every_process_serves_well_formed_metrics(tmp_path: Path) -> None:
    at = {name: free_address() for name in ("coordinator", "summer", "worker")}
    with job(tmp_path, 2, 1, "--metrics", at["coordinator"], summer_flags=("--metrics", at["summer"])) as started:
        started.start_worker(0, "loop.py", GLEANER_METRICS=at["worker"])
        started.start_worker(1, "loop.py")

        wait_until(lambda: value(scrape(at["summer"]), "gleaner_summer_sums_total") > 0)
        wait_until(lambda: value(scrape(at["summer"]), "gleaner_summer_connected_workers") == 2)
        wait_until(lambda: value(scrape(at["worker"]), "gleaner_worker_wait_seconds_total") > 0)
        texts = {name: scrape(address) for name, address in at.items()}

    for name, text in texts.items():
        checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
        assert checked.returncode == 0, f"{name}: {checked.stdout}{checked.stderr}\n{text}"
        assert f"# HELP gleaner_{name}_" in text, text
        assert f"# TYPE gleaner_{name}_" in text, text
    assert value(texts["summer"], "gleaner_summer_epoch") >= 2
    assert value(texts["worker"], "gleaner_worker_reduced_bytes_total") > 0
    assert value(texts["worker"], "gleaner_worker_results_total") > 0
    assert value(texts["worker"], "gleaner_worker_steps_total") > 0
    assert value(texts["worker"], "gleaner_worker_communication_seconds_total") > 0


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool (package prometheus) is not here")
def test_a_worker_counts_slices_of_a_schedule(tmp_path: Path) -> None:
    address = free_address()
    with job(tmp_path, 2, 0, "--strategy", "ring") as started:
        started.start_worker(0, "loop.py", GLEANER_METRICS=address)
        started.start_worker(1, "loop.py")
        wait_until(lambda: value(scrape(address), "gleaner_worker_scheduled_results_total") > 0)
        text = scrape(address)

    checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
    assert checked.returncode == 0, f"{checked.stdout}{checked.stderr}\n{text}"
    assert value(text, "gleaner_worker_slices_total") > 0
    assert value(text, "gleaner_worker_slice_bytes_total") > 0
    assert value(text, "gleaner_worker_slice_window_bytes") > 0
    assert value(text, "gleaner_worker_repeated_slices_total") == 0
    assert value(text, "gleaner_worker_pushed_bytes_total") == 0, "no summer takes part"


def test_the_worker_counts_time_that_ddp_waits_for_buckets(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    address = free_address()
    with job(tmp_path, 2, 1) as started:
        group = str(tmp_path / "group")
        started.start_worker(0, "ddp_loop.py", group, GLEANER_METRICS=address)
        started.start_worker(1, "ddp_loop.py", group)
        wait_until(
            lambda: value(scrape(address), "gleaner_worker_wait_seconds_total") > 0,
            what="worker 0 has waited for a bucket",
        )
