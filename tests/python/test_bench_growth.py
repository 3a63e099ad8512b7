"""Tests the exponents and plots that bench computes from measurements."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, wait_until

BENCH = ROOT / "bench"
sys.path.insert(0, str(BENCH))
from wire import docs, growth  # noqa: E402
from wire.sampling import processor_seconds  # noqa: E402


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
def test_the_exponent_of_a_power_law_is_found(power: float) -> None:
    found = growth.exponents([(x, 3.0 * x**power) for x in (1.0, 2.0, 8.0, 100.0)])
    assert found["exponent"] == pytest.approx(power)
    assert found["last_exponent"] == pytest.approx(power)


def test_a_constant_part_hides_growth_at_first_but_not_at_the_end() -> None:
    found = growth.exponents([(x, 1000.0 + x**2) for x in (1.0, 10.0, 1000.0, 10_000.0)])
    assert found["last_exponent"] == pytest.approx(2.0, abs=0.01)
    assert found["exponent"] < found["last_exponent"]


def test_points_at_or_below_zero_have_no_exponent() -> None:
    with pytest.raises(ValueError, match="two points"):
        growth.exponents([(1.0, -0.1), (2.0, 0.3)])


def test_each_plotted_line_has_its_own_name() -> None:
    names = [line.name for line in growth.lines()]
    assert len(set(names)) == len(names)


def test_processor_use_is_the_mean_over_the_requested_time() -> None:
    samples = [(0.0, 100.0), (1.0, 100.5), (2.0, 102.5), (3.0, 104.5), (4.0, 104.5)]
    assert growth.processors(samples, 0.9, 3.1) == pytest.approx(2.0)
    with pytest.raises(RuntimeError, match="too short"):
        growth.processors(samples, 1.1, 1.9)


def test_processor_use_is_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The samples come from a kernel whose processors have been busy for one more second at each sample."""
    seconds = iter(range(1_000_000))
    monkeypatch.setattr(growth, "processor_seconds", lambda kinds: next(seconds) if kinds == growth.BUSY else None)
    with growth.Busy(period=0.001) as busy:
        wait_until(lambda: len(busy.samples) >= 5)
    assert [used for _, used in busy.samples] == list(range(len(busy.samples)))
    times = [when for when, _ in busy.samples]
    assert growth.processors(busy.samples, times[0], times[4]) == pytest.approx(4 / (times[4] - times[0]))


def test_waiting_processors_are_not_busy(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 20 50 80000 4000 3 7 0 0 0\n")
    assert processor_seconds(growth.BUSY, stat) == pytest.approx(180 / os.sysconf("SC_CLK_TCK"))


MACHINE = {"machine": {"processors": 2, "model": "a Xeon", "kernel": "6.1", "commit": "abc"}, "steps": 5}
AIM = {"aim": 1.0, "at_least": True}
MEASURED = {
    **MACHINE,
    "rows": [
        {"row": "n=8 k=0: 64 MiB", **AIM, "ratio": 0.9, "spread": 0.01, "figures": {}},
        {"row": "n=8 k=1: 64 MiB", **AIM, "ratio": 0.95, "spread": 0.01, "figures": {}},
        {"row": "n=8 k=2: 64 MiB", **AIM, "error": "no link"},
        {
            "row": "n=8 k=0: beside the best of Gloo and Open MPI",
            **AIM,
            "ratio": 1.1,
            "spread": 0.01,
            "figures": {"ours": 5.0, "best": "gloo ring", "gloo ring": 5.5, "mpi ring": 6.0},
        },
        {
            "row": "n=8 k=0: 4 B over the best of Gloo and Open MPI",
            **AIM,
            "ratio": 0.5,
            "spread": 0.1,
            "figures": {"ours": 0.001, "best": "mpi ring", "mpi ring": 0.002, "bytes": 4},
        },
        {
            "row": "n=8: ring beside its model",
            "aim": 0.97,
            "at_least": True,
            "ratio": 0.98,
            "spread": 0.0,
            "figures": {"step": 5.0, "model": 4.9, "simulated": 4.95},
        },
    ],
}
GROWN = {**MACHINE, "lines": [{"line": "step by tensors", "x": "tensors", "unit": "s", "points": [[1, 1.0], [10, 9.0]],
                    "exponent": 0.95, "last_exponent": 0.95}, {"line": "broken", "x": "tensors", "unit": "s",
                                                              "points": [], "error": "why"}]}  # fmt: skip


DOCUMENT = """# Figures
<!-- rows: by bench/plots -->
old
<!-- end of rows -->
between
<!-- strategies: by bench/plots -->
<!-- end of strategies -->
<!-- growth: by bench/plots -->
<!-- end of growth -->
after
"""


def test_the_same_figures_give_the_same_plots_and_document(tmp_path: Path) -> None:
    if subprocess.run(["/usr/bin/python3", "-c", "import matplotlib"], capture_output=True).returncode != 0:
        pytest.skip("there is no matplotlib; scripts/bootstrap bench installs it")
    (tmp_path / "rows.json").write_text(json.dumps(MEASURED))
    (tmp_path / "growth.json").write_text(json.dumps(GROWN))
    document = tmp_path / "figures.md"
    document.write_text(DOCUMENT)
    made = []
    for _ in range(2):
        command = [BENCH / "plots", "--rows", tmp_path / "rows.json", "--growth", tmp_path / "growth.json"]
        subprocess.run([*command, "--docs", document], check=True, capture_output=True)
        made.append({path.name: path.read_bytes() for path in [document, *sorted((tmp_path / "plots").iterdir())]})
    assert set(made[0]) == {"figures.md", "efficiency.svg", "latency.svg", "peers.svg", "growth-tensors.svg"}
    assert made[0] == made[1]
    text = document.read_text()
    assert "old" not in text
    assert "![efficiency](plots/efficiency.svg)" in text
    assert "2 cores of a Xeon" in text
    assert text.index("between") < text.index("| n=8: ring beside its model |")
    assert text.endswith("after\n")


def test_a_document_without_markers_is_an_error() -> None:
    with pytest.raises(ValueError, match="end of rows"):
        docs.fill("# nothing\n", "rows", "content")
