"""Tests `gleaner topology --machine`: machines of files, of profiles, and of this host, and what users get wrong."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from conftest import GLEANER, ROOT, TIMEOUT

MACHINES = ROOT / "tests/unit/machine/machines"


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [str(GLEANER), "topology", "--machine", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)


def report(path: Path) -> dict:
    result = run(path, "-o", "json")
    assert (result.returncode, result.stderr) == (0, "")
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    ("name", "best", "today"),
    [
        ("nvlink-8", "roots", "reduce-scatter"),
        ("pcie-8", "cpu-assisted", "copy"),
        ("pcie-8-nic", "cpu-assisted", "copy"),
        ("hgx-8", "gpu-direct", "reduce-scatter"),
        ("cube-mesh-8", "cpu-assisted", "copy"),
        ("one-gpu", "copy", "copy"),
        ("cloud-vm", "copy", "copy"),
    ],
)
def test_machines(name: str, best: str, today: str) -> None:
    made = report(MACHINES / f"{name}.json")
    assert made["best"] == best
    assert made["today"] == today
    ways = {way["way"]: way for way in made["ways"]}
    possible = [way["seconds"] for way in ways.values() if way["possible"]]
    assert ways[best]["seconds"] == min(possible)
    assert {way for way in ways if ways[way]["runs"]} == {"copy", today}
    shown = run(MACHINES / f"{name}.json").stdout
    assert f"Best way    {best}: " in shown
    assert ("Gleaner does not go this way yet" in shown) == (best != "copy")


def test_machine_survives_its_file(tmp_path: Path) -> None:
    first = report(MACHINES / "cloud-vm.json")
    path = tmp_path / "machine.json"
    path.write_text(json.dumps(first["machine"]))
    assert report(path) == first, "assumed bandwidths stay assumed"


def test_this_machine() -> None:
    result = run()
    if result.returncode == 0:
        assert "Best way" in result.stdout
    else:
        assert "this machine: the machine has no GPU" in result.stderr


@pytest.mark.parametrize(
    ("content", "flags", "message"),
    [
        ('{"gpus": []}', [], "the machine has no GPU"),
        (
            '{"gpus": [{"name": "a", "bandwidth": "0Gbit"}]}',
            [],
            "GPU 0: \"bandwidth\" is '0Gbit'; give bits per second",
        ),
        ('{"gpus": [{"name": "a"}], "nvlink": [{"gpus": ["a", "b"]}]}', [], "'b', which is the name of no GPU"),
        ("gpus: 8", [], "malformed JSON"),
        ('{"gpus": [{"name": "a"}]}', ["-o", "svg"], "--output: a machine is shown as table or json"),
        ('{"gpus": [{"name": "a"}]}', ["--bandwidth", "1Gbit"], "--machine: it shows one machine; leave"),
        ('{"gpus": [{"name": "a"}]}', ["--groups"], "--machine: it shows one machine; leave"),
    ],
)
def test_errors_say_what_to_do(tmp_path: Path, content: str, flags: list[str], message: str) -> None:
    path = tmp_path / "machine.json"
    path.write_text(content)
    result = run(path, *flags)
    assert result.returncode in (1, 2)
    assert message in result.stderr
    assert result.stdout == ""


def test_missing_file() -> None:
    result = run("/no/such/machine.json")
    assert result.returncode != 0
    assert "can't read the machine '/no/such/machine.json': No such file" in result.stderr
