"""Tests the parts of tests/gpu/check that need no GPU: time limits, verdicts, and the tables of docs/gpu.md."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, TIMEOUT, require_build

sys.path.insert(0, str(ROOT / "tests" / "gpu"))
sys.path.insert(0, str(ROOT / "bench"))
from gpu_check import jobs, layout, report, running, steps

CHECK = ROOT / "tests" / "gpu" / "check"
FACTS = {
    "gpu": "NVIDIA H100",
    "nvidia_smi": [{"driver_version": "580.1", "pcie.link.gen.max": "5", "pcie.link.width.max": "16"}],
    "processors": 16,
    "processor": "Xeon",
    "system": "Ubuntu 24.04",
    "kernel": "6.18",
    "glibc": "glibc 2.39",
    "python": "3.12.3",
    "torch": "2.11.0",
    "nccl": "2.28.9",
}


def outcome(status: int = 0, timed_out: bool = False) -> running.Outcome:
    return running.Outcome(status, "the last line", 1.0, timed_out)


def event(name: str, kind: str, note: str = "") -> dict[str, dict[str, str]]:
    return {name: {"check": name, "event": kind, "note": note}}


def test_a_command_that_hangs_is_ended_with_its_orphans(tmp_path: Path) -> None:
    marker = tmp_path / "orphan"
    orphan = f"import os, time; open({str(marker)!r}, 'w').write(str(os.getpid())); time.sleep({10 * TIMEOUT})"
    # A process of another session, as the processes of `gleaner run` are.
    code = (
        "import subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-c', {orphan!r}], start_new_session=True)\n"
        f"time.sleep({10 * TIMEOUT})"
    )
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'tests' / 'gpu')!r})\n"
        "from pathlib import Path\nfrom gpu_check import running\nrunning.adopt_orphans()\n"
        f"done = running.run([sys.executable, '-c', {code!r}], 5, Path({str(tmp_path / 'log')!r}))\n"
        "assert done.timed_out and not done.is_good"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=TIMEOUT)
    if marker.exists():  # a machine that is slow enough ends the parent before it starts the orphan
        with pytest.raises(ProcessLookupError):
            os.kill(int(marker.read_text()), 0)


def test_a_missing_program_is_an_outcome(tmp_path: Path) -> None:
    done = running.run([str(tmp_path / "absent")], 10, tmp_path / "log")
    assert not done.is_good
    assert "absent" in done.reason(10)


def test_a_check_passes_if_it_passed_on_all_ranks() -> None:
    ranks = [event("a", "passed", "a note"), event("a", "passed")]
    assert jobs.verdicts(["a"], ranks, outcome(), 9) == [{"check": "a", "verdict": "passed", "note": "a note"}]
    ranks = [event("a", "passed"), event("a", "failed", "why")]
    assert jobs.verdicts(["a"], ranks, outcome(), 9) == [{"check": "a", "verdict": "failed", "note": "rank 1: why"}]


def test_a_check_that_did_not_end_fails_and_later_ones_are_left() -> None:
    ranks = [event("a", "passed") | event("b", "began"), event("a", "passed")]
    a, b = jobs.verdicts(["a", "b", "c"], ranks, outcome(timed_out=True), 9)
    assert (a["verdict"], b["verdict"]) == ("passed", "failed")
    assert "did not end on ranks 0, 1; the job did not end within 9 s" in b["note"]


def test_a_test_in_which_the_program_crashed_is_known() -> None:
    output = "[ RUN      ] A.one\n[       OK ] A.one (0 ms)\n[ RUN      ] A.two\nabort"
    assert steps.tests_of(output) == (["A.one", "A.two"], ["A.one"])


def test_a_step_that_raises_does_not_stop_the_check(tmp_path: Path) -> None:
    require_build()
    command = [
        sys.executable,
        str(CHECK),
        "--device",
        "cpu",
        "--out",
        str(tmp_path / "out"),
        "--steps",
        "library|copies",
    ]
    command += ["--libcuda", str(tmp_path / "absent.so")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 1, done.stdout + done.stderr
    record = json.loads((tmp_path / "out" / "record.json").read_text())
    assert [step["verdict"] for step in record["steps"]] == ["passed", "failed"], record
    assert "absent.so" in record["steps"][1]["note"]
    again = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    assert again.returncode == 2
    assert "not empty" in again.stderr


def copies(direction: str, size: int, ours: float, theirs: float, streams: int) -> dict[str, object]:
    rates = {"gleaner": ours, "driver": theirs / 2, "runtime": theirs}
    return {"direction": direction, "bytes": size, "copies": 8, "streams": streams, "bytes_per_second": rates}


def record(note: str = "") -> report.Record:
    rows = [
        copies(direction, size, 5e10 * streams, 1e11, streams)
        for direction in ("to host", "to device", "both")
        for size in (1 << 16, 1 << 22)
        for streams in (1, 2)
    ]
    times = [
        {"contender": "gleaner", "ranks": 2, "case": "1 MiB", "seconds": 0.001},
        {"contender": "nccl", "ranks": 2, "error": "Duplicate GPU detected"},
        {"contender": "nccl", "ranks": 1, "case": "1 MiB", "seconds": 0.0005},
    ]
    listed = [
        {"step": "copies", "verdict": "passed", "note": note, "seconds": 1.0, "rows": rows},
        {"step": "collectives", "verdict": "passed", "note": "", "seconds": 1.0, "rows": times},
    ]
    return {"device": "cuda", "machine": FACTS, "commit": "abc", "date": "2026-01-01", "steps": listed}


def test_the_better_number_of_streams_counts() -> None:
    rows = record()["steps"][0]["rows"]
    assert steps.best_ratios(rows)["both", 1 << 22] == 1.0, "beside the faster of driver and runtime"


def test_tables_have_rates_ratios_and_reasons() -> None:
    text = report.markdown_of(record())
    assert "NVIDIA H100, PCIe 5 x16, driver 580.1; 16 cores of Xeon" in text
    assert "| 4 MiB | 100.0 (1.00) | 100.0 (1.00) | 100.0 (1.00) |" in text
    assert "| tensors | gleaner, 2 ranks | nccl, 1 rank |" in text
    assert "| 1 MiB | 1.00 | 0.50 |" in text
    assert "Not measurable: nccl with 2 ranks: Duplicate GPU detected" in text


def test_the_report_survives_a_step_without_results() -> None:
    broken = record()
    broken["steps"] = [{"step": "copies", "verdict": "failed", "note": "a\nb", "seconds": 0.1}]
    assert "failed   copies (0.1 s): a\n    b" in report.text_of(broken)


def test_the_document_shows_the_kept_record() -> None:
    done = subprocess.run([sys.executable, str(ROOT / "tests" / "gpu" / "document"), "--check"], capture_output=True)
    assert done.returncode == 0, done.stdout


# The checks of a program for two ranks, of which three break their job.
MISTAKES = """
import os, time
import gleaner.torch as gln, ranks, torch

def check_before(): return "a note"
def check_hangs():
    if gln.rank() == 1: time.sleep(3600)
def check_raises(): gln.push_pull(torch.ones(1), "no name")
def check_crashes():
    if gln.rank() == 0: os.abort()
def check_after(): raise ranks.Skip("no reason")

ranks.run(globals())
"""


@pytest.mark.long
def test_a_job_goes_on_after_checks_that_break_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    require_build()
    (tmp_path / "mistakes.py").write_text(MISTAKES)
    shutil.copy(layout.PROGRAMS / "ranks.py", tmp_path)
    monkeypatch.setattr(layout, "PROGRAMS", tmp_path)
    job = jobs.Job("mistakes", "mistakes.py", check_limit=20)
    entries = {entry["check"]: entry for entry in jobs.run(job, "cpu", tmp_path, 2 * TIMEOUT, patience=1)}
    assert {name: entry["verdict"] for name, entry in entries.items()} == {
        "before": "passed",
        "hangs": "failed",
        "raises": "failed",
        "crashes": "failed",
        "after": "skipped",
    }, entries
    assert entries["before"]["note"] == "a note"
    assert re.search("did not end on ranks (0, )?1; the job", entries["hangs"]["note"])
    assert "rank 0: Traceback" in entries["raises"]["note"]


@pytest.mark.long
def test_all_checks_pass_with_cpu_tensors(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    command = [sys.executable, str(CHECK), "--device", "cpu", "--out", str(tmp_path / "out"), "--patience", "8"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
