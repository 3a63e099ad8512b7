"""Runs jobs and probes on hosts as users have them: with other loopbacks, greetings of shells, and shared hosts."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
from conftest import GLEANER, PATIENT_RUN, TIMEOUT, environment  # noqa: E402

BENCH = "gleaner bench push-pull --bytes 64KiB --steps 2 --verify"
PATIENT = " ".join(word for pair in PATIENT_RUN.items() for word in pair)


@functools.cache
def namespaces_work() -> bool:
    made = subprocess.run(["unshare", "--net", "ip", "link", "set", "lo", "up"], capture_output=True)
    return made.returncode == 0


def shell(line: str, *before: str) -> subprocess.CompletedProcess[str]:
    """Runs a line of a shell in which `gleaner` is the program under test, behind the words `before`."""
    path = f"{GLEANER.parent}:{environment()['PATH']}"
    return subprocess.run(
        [*before, "bash", "-c", line], capture_output=True, text=True, timeout=TIMEOUT, env=environment(PATH=path)
    )


@pytest.mark.parametrize(
    "command",
    [
        f"gleaner run {PATIENT} --workers 2 --summers 1 -- {BENCH}",
        f"gleaner run {PATIENT} --workers 2 --metrics [::1]:0 --transports tcp -- {BENCH}",
        f"gleaner run {PATIENT} --workers 2 --strategy ring -- {BENCH}",
    ],
)
def test_loopback_of_ipv6_alone(command: str) -> None:
    if not namespaces_work():
        pytest.skip("this test needs a network namespace of its own")
    done = shell(f"ip link set lo up; ip address del 127.0.0.1/8 dev lo; {command}", "unshare", "--net")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("every bit as expected") == 2, done.stdout


def hosts_file(folder: Path, **lists: object) -> Path:
    file = folder / "hosts.json"
    file.write_text(json.dumps(lists))
    return file


def host(address: str, script: str = "") -> dict[str, object]:
    """Returns a host whose shell runs `script` before each command, as SSH leads to a host's shell."""
    return {"address": address, "prefix": ["bash", "-c", f'{script}\nexec "$@"', "shell"] if script else []}


GREETINGS = [
    "echo Welcome to gpu1",
    "printf 'Last login: today '",
    "head -c 100000 /dev/zero | tr '\\0' x >&2",
    "head -c 100000 /dev/zero | tr '\\0' x; echo '{}'",
]


@pytest.mark.parametrize("greeting", GREETINGS)
def test_probes_of_hosts_that_greet(greeting: str, tmp_path: Path) -> None:
    file = hosts_file(tmp_path, workers=[host(f"127.0.0.{i}", greeting) for i in (2, 3)])
    done = shell(f"gleaner probe pairs --hosts {file}")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["hosts"] == ["127.0.0.2", "127.0.0.3"]


def test_a_host_that_greets_and_fails_is_named(tmp_path: Path) -> None:
    script = "head -c 100000 /dev/zero | tr '\\0' x >&2; echo >&2; echo 'no such command' >&2; exit 127"
    done = shell(
        f"gleaner probe pairs --hosts {hosts_file(tmp_path, workers=[host('::1'), host('127.0.0.3', script)])}"
    )
    assert done.returncode == 1
    assert done.stderr.startswith("gleaner probe pairs: 127.0.0.3: ")
    assert done.stderr.endswith("no such command\n") and len(done.stderr) < 2000


@pytest.mark.parametrize(
    ("workers", "summers", "hosts"),
    [
        ("2 2 3", "", 2),
        ("2 3", "2", 2),
        ("2", "3 3", 2),
    ],
)
def test_members_that_share_a_host(workers: str, summers: str, hosts: int, tmp_path: Path) -> None:
    lists = [[host(f"127.0.0.{number}") for number in numbers.split()] for numbers in (workers, summers)]
    done = shell(f"gleaner probe pairs --hosts {hosts_file(tmp_path, workers=lists[0], summers=lists[1])}")
    assert done.returncode == 0, done.stderr
    file = tmp_path / "probes.json"
    file.write_text(done.stdout)
    assert f"{hosts} hosts" in shell(f"gleaner topology {file}").stdout


def test_one_host_alone_has_no_pairs(tmp_path: Path) -> None:
    done = shell(f"gleaner probe pairs --hosts {hosts_file(tmp_path, workers=[host('127.0.0.2')] * 2)}")
    assert done.returncode == 2
    assert 'expected at least 2 hosts with different "address"; it has 1' in done.stderr


@pytest.mark.parametrize("address", ["127.0.1.1", "localhost", "::1"])
def test_a_host_whose_name_leads_to_its_loopback(address: str, tmp_path: Path) -> None:
    if not namespaces_work():
        pytest.skip("this test needs a network namespace of its own")
    other = host(address, "[[ $1 ]] && ip link set lo up")
    other["prefix"] = ["unshare", "--net", *other["prefix"]]
    done = shell(f"gleaner probe pairs --hosts {hosts_file(tmp_path, workers=[host('127.0.0.2'), other])}")
    assert done.returncode == 1
    assert f"host '{address}' calls itself" in done.stderr
    assert 'set its "address" to one that other hosts reach' in done.stderr


@pytest.mark.parametrize("coordinator", ["127.0.1.1", "localhost", None])
def test_a_coordinator_that_other_hosts_do_not_reach(coordinator: str | None, tmp_path: Path) -> None:
    given = {"coordinator": {"address": coordinator}} if coordinator else {}
    file = hosts_file(tmp_path, workers=[host("192.0.2.1", ":")], **given)
    done = shell(f"gleaner run {PATIENT} --workers 1 --hosts {file} -- true")
    assert "which leads each host to itself; members on other hosts, such as '192.0.2.1'" in done.stderr
    for beside in (host("127.0.0.2", ":"), host("192.0.2.1")):
        file = hosts_file(tmp_path, workers=[beside], **given)
        assert "leads each host" not in shell(f"gleaner run {PATIENT} --workers 1 --hosts {file} -- true").stderr
