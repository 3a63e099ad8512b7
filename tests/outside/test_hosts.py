"""Runs jobs and probes on hosts as users have them: with other loopbacks, greetings of shells, and shared hosts."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
from conftest import GLEANER, PATIENT_RUN, ROOT, TIMEOUT, environment  # noqa: E402
from requirements import require_namespaces  # noqa: E402

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
        f"gleaner run {PATIENT} --workers 2 --metrics localhost:0 -- {BENCH}",
        f"GLEANER_METRICS=localhost:0 gleaner run {PATIENT} --workers 2 -- {BENCH}",
    ],
)
def test_loopback_of_ipv6_alone(command: str) -> None:
    if not namespaces_work():
        pytest.skip("this test needs a network namespace of its own")
    done = shell(f"ip link set lo up; ip address del 127.0.0.1/8 dev lo; {command}", "unshare", "--net")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("every bit as expected") == 2, done.stdout


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("10.0.0.300:0", "'10.0.0.300' is no IPv4 address, which has four numbers from 0 to 255; give a host's name"),
        ("[::zz]:0", "'::zz' is no IPv6 address; give a host's name, or an address"),
        ("[::1]:0", "can't listen on [::1]:0: this machine has no such address; give one of its addresses"),
        ("nowhere.invalid:0", "can't find host 'nowhere.invalid': this machine's name service"),
    ],
)
def test_metrics_at_an_address_that_this_machine_lacks(address: str, told: str) -> None:
    if not namespaces_work():
        pytest.skip("this test needs a network namespace of its own")
    command = f"gleaner run {PATIENT} --workers 1 --metrics {address} -- true"
    done = shell(f"ip link set lo up; ip address del ::1/128 dev lo 2>/dev/null; {command}", "unshare", "--net")
    assert done.returncode != 0
    assert told in done.stderr, done.stderr


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


@pytest.mark.long
@pytest.mark.parametrize("member", ["workers", "summers"])
@pytest.mark.parametrize("address", ["127.0.1.1", "localhost"])
def test_a_member_that_is_reached_at_its_loopback(address: str, member: str, tmp_path: Path) -> None:
    require_namespaces()
    lab, name, file = [ROOT / "tests" / "lab" / "lab"], f"r{os.getpid() % 10**6}", tmp_path / "hosts.json"
    try:
        up = ["up", "--name", name, "--workers", "2", "--summers", "1", "--rate", "200mbit", "--hosts-json", file]
        subprocess.run([*lab, *up], check=True, capture_output=True, timeout=TIMEOUT)
        hosts = json.loads(file.read_text())
        hosts[member][-1]["address"] = address
        file.write_text(json.dumps(hosts))
        run = f"gleaner run {PATIENT} --workers 2 --summers 1 --transports tcp --hosts {file}"
        done = shell(f"{run} -- {GLEANER.parent}/{BENCH}")
    finally:
        subprocess.run([*lab, "down", "--name", name], capture_output=True)
    assert done.returncode != 0
    assert f'replace the "address" of {member[:-1]} {len(hosts[member]) - 1} in the file of --hosts' in done.stderr
    assert "GLEANER_ADDRESS" not in done.stderr and "--advertise" not in done.stderr, done.stderr


def network(folder: Path, names: list[str]) -> Path:
    """Writes a file of hosts in two racks: every second host is in the same rack."""
    file = folder / "network.json"
    links = [{"a": name, "b": f"rack{i % 2}", "bandwidth": 1e10, "latency_us": 1} for i, name in enumerate(names)]
    links.append({"a": "rack0", "b": "rack1", "bandwidth": 1e9, "latency_us": 9})
    file.write_text(json.dumps({"hosts": names, "switches": ["rack0", "rack1"], "links": links}))
    return file


def ranks_of(network: Path, output: str) -> subprocess.CompletedProcess[str]:
    return shell(f"gleaner ranks --topology {network} --algorithm ring --bytes 1MiB -o {output}")


@pytest.mark.parametrize("name", ["gpu 1", "gpu#1", "gpu=1", "gpu,1", "gpü1", '"gpu1"'])
def test_names_that_mpirun_does_not_read(name: str, tmp_path: Path) -> None:
    file = network(tmp_path, ["gpu0", name, "gpu2", "gpu3"])
    for output in ("hostfile", "rankfile"):
        done = ranks_of(file, output)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"does not read the name of host '{name}'" in done.stderr
    written = tmp_path / "map"
    written.write_text(ranks_of(file, "json").stdout)
    sim = shell(f"gleaner sim --topology {file} --algorithm ring --bytes 1MiB --rank-map {written} -o json")
    assert sim.returncode == 0, sim.stderr


def test_files_for_mpirun_are_read_back(tmp_path: Path) -> None:
    file = network(tmp_path, ["gpu0", "10.0.0.1", "gpu-2.example", "fd00::3", "gpu_4", "gpu5"])
    written, seconds = tmp_path / "map", set()
    for output in ("json", "rankfile", "hostfile"):
        text = ranks_of(file, output).stdout
        lines = text.splitlines(keepends=True)
        written.write_text("# a comment\n" + "".join(reversed(lines)) if output == "rankfile" else text)
        sim = shell(f"gleaner sim --topology {file} --algorithm ring --bytes 1MiB --rank-map {written} -o json")
        assert sim.returncode == 0, sim.stderr
        seconds.add(json.loads(sim.stdout)["seconds"])
    straight = shell(f"gleaner sim --topology {file} --algorithm ring --bytes 1MiB -o json")
    assert len(seconds) == 1 and seconds != {json.loads(straight.stdout)["seconds"]}
    written.write_text("rank 0=gpu0 slot=0\nrank 0=gpu5 slot=0\n")
    twice = shell(f"gleaner sim --topology {file} --algorithm ring --bytes 1MiB --rank-map {written}")
    assert twice.returncode == 2 and "rank 0 occurs twice" in twice.stderr


# mpirun calls this script in place of ssh, with the arguments HOST COMMAND... Each daemon gets a folder for its files,
# because daemons that share a folder sometimes hang at the start.
AGENT = """#!/bin/sh
host=$1; shift
export OMPI_MCA_orte_tmpdir_base="{folder}/$host"
mkdir -p "$OMPI_MCA_orte_tmpdir_base"
exec ip netns exec "$(sed -n "s/^$host //p" "{folder}/namespaces")" sh -c "$*"
"""


@pytest.mark.long
@pytest.mark.parametrize("own", [0, 1, 2])
def test_mpirun_keeps_the_map_from_any_host(own: int, tmp_path: Path) -> None:
    require_namespaces()
    if not shutil.which("mpirun"):
        pytest.skip("Open MPI is not installed; scripts/bootstrap bench installs it")
    lab, name, hosts = [ROOT / "tests" / "lab" / "lab"], f"m{os.getpid() % 10**6}", tmp_path / "hosts.json"
    try:
        up = ["up", "--name", name, "--workers", "3", "--summers", "0", "--rate", "200mbit", "--hosts-json", hosts]
        subprocess.run([*lab, *up], check=True, capture_output=True, timeout=TIMEOUT)
        spaces = {each["address"]: each["prefix"][-1] for each in json.loads(hosts.read_text())["workers"]}
        addresses = list(spaces)
        (tmp_path / "namespaces").write_text("".join(f"{address} {space}\n" for address, space in spaces.items()))
        agent = tmp_path / "agent"
        agent.write_text(AGENT.format(folder=tmp_path))
        agent.chmod(0o755)
        file = network(tmp_path, [addresses[2], addresses[0], addresses[1]])
        order = [each["host"] for each in json.loads(ranks_of(file, "json").stdout)["ranks"]]
        (tmp_path / "ranks").write_text(ranks_of(file, "rankfile").stdout)
        subnet = addresses[0].rsplit(".", 1)[0] + ".0/24"
        started = shell(
            f"TMPDIR={tmp_path} mpirun --allow-run-as-root --rankfile {tmp_path}/ranks"
            f" --mca plm_rsh_agent {agent} --mca plm_rsh_no_tree_spawn 1 --mca oob_tcp_if_include {subnet}"
            " sh -c 'echo $OMPI_COMM_WORLD_RANK $(hostname -I) $(env -u OMP_NUM_THREADS nproc)'",
            *["ip", "netns", "exec", spaces[addresses[own]]],
        )
        assert started.returncode == 0, started.stderr
        assert sorted(line.split() for line in started.stdout.splitlines()) == [
            [str(rank), address, str(len(os.sched_getaffinity(0)))] for rank, address in enumerate(order)
        ]
    finally:
        subprocess.run([*lab, "down", "--name", name], capture_output=True)
