"""Tests tests/lab/lab: hosts reach each other, labs are separate, and `lab down` leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ROOT, TIMEOUT
from requirements import require_namespaces

LAB = ROOT / "tests" / "lab" / "lab"
pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def namespaces() -> None:
    require_namespaces()


def lab(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([LAB, *arguments], capture_output=True, text=True, timeout=TIMEOUT)


def traces_of(name: str) -> str:
    spaces = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout.splitlines()
    links = subprocess.run(["ip", "-brief", "link"], capture_output=True, text=True).stdout.splitlines()
    return "\n".join(line for line in spaces + links if f"glab-{name}-" in line or f"glab{name}" in line)


@pytest.fixture
def name() -> Iterator[str]:
    chosen = f"t{os.getpid() % 10**6}"
    yield chosen
    lab("down", "--name", chosen)


def test_hosts_reach_each_other_and_the_machine(name: str, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts.json"
    made = lab("up", "--name", name, "--workers", "2", "--summers", "1", "--rate", "50mbit", "--hosts-json", hosts)
    assert made.returncode == 0, made.stderr
    wanted = json.loads(hosts.read_text())
    assert [len(wanted["workers"]), len(wanted["summers"])] == [2, 1]
    assert wanted["coordinator"]["prefix"] == []
    # Without this setting, jobs would use the shared memory of the machine and not the links.
    for command in ([*wanted["workers"][0]["prefix"]], [LAB, "exec", "--name", name, "summer0", "--"]):
        shown = subprocess.run([*command, "printenv", "GLEANER_TRANSPORTS"], capture_output=True, text=True)
        assert shown.stdout == "tcp\n", shown.stderr
    talk = "import socket; s = socket.create_server(('', 7000)); print('up', flush=True); print(s.accept()[1][0])"
    listener = subprocess.Popen(
        [*wanted["summers"][0]["prefix"], "python3", "-c", talk], stdout=subprocess.PIPE, text=True
    )
    assert listener.stdout.readline() == "up\n"
    call = f"import socket; socket.create_connection(('{wanted['summers'][0]['address']}', 7000), 60)"
    assert lab("exec", "--name", name, "worker1", "--", "python3", "-c", call).returncode == 0
    assert listener.communicate(timeout=TIMEOUT)[0].strip() == wanted["workers"][1]["address"]
    own = subprocess.run(["ip", "-4", "-brief", "addr", "show", f"glab{name}"], capture_output=True, text=True).stdout
    assert wanted["coordinator"]["address"] in own


def test_each_host_has_its_own_rate_which_can_change(name: str) -> None:
    assert (
        lab("up", "--name", name, "--workers", "2", "--summers", "0", "--worker-rates", "50mbit,80mbit").returncode == 0
    )
    assert lab("rate", "--name", name, "worker0", "20mbit").returncode == 0
    shown = lab("status", "--name", name).stdout.splitlines()
    assert ["20Mbit" in shown[0], "80Mbit" in shown[1]] == [True, True], shown
    for space, link in ((f"glab-{name}-worker0", "eth0"), (f"glab-{name}-switch", "worker0")):  # both directions
        shaper = subprocess.run(["tc", "-n", space, "qdisc", "show", "dev", link], capture_output=True, text=True)
        assert "rate 20Mbit" in shaper.stdout


def qdisc(space: str, link: str) -> str:
    return subprocess.run(["tc", "-n", space, "qdisc", "show", "dev", link], capture_output=True, text=True).stdout


def test_racks_have_shaped_uplinks_which_can_change(name: str) -> None:
    made = lab(
        "up", "--name", name, "--racks", "2x2", "--rate", "80mbit", "--uplink", "40mbit", "--rates", "rack1=30mbit"
    )
    assert made.returncode == 0, made.stderr
    switch = f"glab-{name}-switch"
    for link in ("rack0-up", "rack0-down"):  # both directions
        assert "rate 40Mbit" in qdisc(switch, link)
    assert lab("rate", "--name", name, "rack0", "20mbit").returncode == 0
    for link in ("rack0-up", "rack0-down"):
        assert "rate 20Mbit" in qdisc(switch, link)
    shown = lab("status", "--name", name).stdout.splitlines()
    assert [line.split()[1] for line in shown] == ["worker0", "worker1", "worker2", "worker3", "rack0", "rack1"]
    assert ["20Mbit" in shown[4], "30Mbit" in shown[5]] == [True, True], shown
    topology = json.loads(lab("topology", "--name", name).stdout)
    assert [host["place"] for host in topology["hosts"]] == [[0, 0], [0, 1], [1, 0], [1, 1]]
    bandwidth = {(link["a"], link["b"]): round(link["bandwidth"] * 1514 / 1448) for link in topology["links"]}
    assert bandwidth == {
        **{(f"worker{i}", f"rack{i // 2}"): 80_000_000 for i in range(4)},
        **{(f"rack{i}", "core"): rate for i, rate in enumerate((20_000_000, 30_000_000))},
    }


def test_only_traffic_between_racks_crosses_uplinks(name: str) -> None:
    """Sends a megabyte within a rack, and then one to a host of another pod, over two levels of uplinks."""
    sent = 1_000_000
    assert lab("up", "--name", name, "--tiers", "2,1,2", "--rate", "none").returncode == 0

    def carried(link: str) -> int:
        lines = lab("status", "--name", name).stdout.splitlines()
        return next(int(line.split()[-5]) for line in lines if line.split()[1] == link)

    addresses = {line.split()[1]: line.split()[2] for line in lab("status", "--name", name).stdout.splitlines()}
    for receiver, crosses in (("worker1", False), ("worker3", True)):
        before = {link: carried(link) for link in ("rack0", "pod0")}
        listen = "import socket; s = socket.create_server(('', 7000)); print('up', flush=True); c = s.accept()[0]\n"
        listen += f"print(sum(iter(lambda: len(c.recv(1 << 16)), 0)) == {sent})"
        command = [LAB, "exec", "--name", name, receiver, "--", "python3", "-c", listen]
        listener = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert listener.stdout.readline() == "up\n"
        call = f"import socket; socket.create_connection(('{addresses[receiver]}', 7000), 60).sendall(bytes({sent}))"
        assert lab("exec", "--name", name, "worker0", "--", "python3", "-c", call).returncode == 0
        assert listener.communicate(timeout=TIMEOUT)[0] == "True\n"
        for link, bytes_ in before.items():
            assert (carried(link) - bytes_ >= sent) == crosses


def test_hosts_have_static_neighbours(name: str) -> None:
    """Learned neighbours would go into a table that all namespaces share, and 32 hosts would fill it."""
    assert lab("up", "--name", name, "--workers", "3", "--summers", "1", "--rate", "none").returncode == 0
    for space in ([], ["-n", f"glab-{name}-worker0"], ["-n", f"glab-{name}-summer0"]):
        known = subprocess.run(["ip", *space, "-4", "neigh"], capture_output=True, text=True).stdout.splitlines()
        link = "eth0" if space else f"glab{name}"
        assert sum(f"dev {link} " in line and "PERMANENT" in line for line in known) == 4, known


def test_two_labs_at_once(name: str) -> None:
    other = f"{name}b"
    try:
        for each in (name, other):
            assert lab("up", "--name", each, "--workers", "1", "--summers", "0").returncode == 0
        again = lab("up", "--name", name)
        assert again.returncode == 1
        assert "is up already" in again.stderr
        lab("down", "--name", name)
        assert traces_of(name + "b")
        assert lab("exec", "--name", other, "worker0", "--", "true").returncode == 0
    finally:
        lab("down", "--name", other)


def test_down_kills_processes_on_the_hosts(name: str) -> None:
    assert lab("up", "--name", name, "--workers", "1", "--summers", "0").returncode == 0
    sleeper = subprocess.Popen([LAB, "exec", "--name", name, "worker0", "--", "sleep", "100"])
    while not subprocess.run(["ip", "netns", "pids", f"glab-{name}-worker0"], capture_output=True).stdout:
        time.sleep(0.01)
    assert lab("down", "--name", name).returncode == 0
    assert sleeper.wait(timeout=TIMEOUT) != 0
    assert traces_of(name) == ""


@pytest.mark.parametrize("shape", [["--workers", "100"], ["--racks", "4x25", "--uplink", "50mbit"]])
def test_an_interrupted_up_leaves_nothing(name: str, shape: list[str]) -> None:
    making = subprocess.Popen([LAB, "up", "--name", name, *shape], stdout=subprocess.PIPE, text=True)
    while f"glab-{name}-worker1" not in traces_of(name):
        time.sleep(0.01)
    making.send_signal(signal.SIGTERM)
    assert making.wait(timeout=TIMEOUT) != 0
    assert traces_of(name) == ""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["up", "--name", "Not a name"], "a-z"),
        (["up", "--rate", "fast"], "fast"),
        (["up", "--workers", "300"], "do not fit"),
        (["up", "--worker-rates", "1mbit"], "1 rates for 4 workers"),
        (["exec", "worker0", "--", "true"], "not up"),
        (["rate", "worker0", "1mbit"], "not up"),
        (["topology"], "not up"),
        (["up", "--uplink", "1mbit"], "--racks or --tiers"),
        (["up", "--racks", "2x2", "--workers", "5"], "the racks have 4"),
        (["up", "--racks", "2x2", "--uplink", "1mbit,2mbit"], "2 rates"),
        (["up", "--racks", "2x2", "--uplink", "fast"], "fast"),
        (["up", "--rates", "rack0=1mbit"], "no link rack0"),
        (["up", "--rates", "worker0"], "NAME=RATE"),
    ],
)
def test_bad_input_is_an_error(name: str, arguments: list[str], expected: str) -> None:
    where = [] if "--name" in arguments else ["--name", name]
    done = lab(arguments[0], *where, *arguments[1:])
    assert done.returncode == 1
    assert expected in done.stderr
    assert traces_of(name) == ""
