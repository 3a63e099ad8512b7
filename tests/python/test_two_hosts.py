"""Tests which addresses the members of a job on two hosts tell each other. The hosts are network namespaces."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import GLEANER, SUMMER, TIMEOUT, environment, read_until, wait_until

pytestmark = pytest.mark.long

HOSTS = ("192.0.2.1", "192.0.2.2")
LOOP = """
import gleaner, numpy, time
gleaner.init()
while True:
    time.sleep(0.02)
    print(gleaner.push_pull(numpy.ones(3, "f4"), name="a", average=False), flush=True)
"""
SUMS = "import gleaner, numpy; gleaner.init(); print(gleaner.push_pull(numpy.ones(3, 'f4'), name='a', average=False))"


class Hosts:
    """Two network namespaces with a link between them, and the processes in them."""

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[str]] = []
        self._keepers = [subprocess.Popen(["unshare", "--net", "sleep", "infinity"]) for _ in HOSTS]
        own = os.readlink("/proc/self/ns/net")
        for keeper in self._keepers:
            wait_until(lambda keeper=keeper: os.readlink(f"/proc/{keeper.pid}/ns/net") != own, what="it has a network")
        self._ip(0, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", str(self._keepers[1].pid))
        for host, address in enumerate(HOSTS):
            self._ip(host, "address", "add", f"{address}/24", "dev", "eth0")
            self._ip(host, "link", "set", "lo", "up")
            self._ip(host, "link", "set", "eth0", "up")

    def add_address_behind(self, host: int, address: str) -> None:
        """Gives this host one more address, to which the other host has a route."""
        self._ip(host, "address", "add", f"{address}/32", "dev", "lo")
        self._ip(1 - host, "route", "add", address, "via", HOSTS[host])

    def cut_route_to(self, host: int, address: str) -> None:
        self._ip(1 - host, "route", "replace", "blackhole", address)

    def _ip(self, host: int, *words: str) -> None:
        subprocess.run(["nsenter", f"--net=/proc/{self._keepers[host].pid}/ns/net", "ip", *words], check=True)

    def start(self, host: int, *command: str, **more: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            ["nsenter", f"--net=/proc/{self._keepers[host].pid}/ns/net", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(GLEANER_TRANSPORTS="tcp", **more),
        )
        self.processes.append(process)
        return process

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.communicate()
        for keeper in self._keepers:
            keeper.kill()
            keeper.wait()


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    if os.geteuid() != 0:
        pytest.skip("needs root, to make network namespaces")
    if not all(map(shutil.which, ("ip", "unshare", "nsenter"))):
        pytest.skip("needs the commands ip, unshare and nsenter")
    made = Hosts()
    yield made
    made.close()


class Job:
    """A job of two workers, whose coordinator is on the first host."""

    def __init__(self, hosts: Hosts, folder: Path, *flags: str, summers: int = 0) -> None:
        self._hosts = hosts
        self._token = str(folder / "token")
        command = [str(GLEANER), "coordinator", "--listen", f"{HOSTS[0]}:0", "--token-file", self._token]
        coordinator = hosts.start(0, *command, "--workers", "2", "--summers", str(summers), *flags)
        self._address = read_until(coordinator, "listening on ").split()[-1]

    def worker(self, index: int, script: str = SUMS, **more: str) -> subprocess.Popen[str]:
        identity = {"GLEANER_WORKER": str(index), "GLEANER_TOKEN_FILE": self._token}
        return self._hosts.start(
            index, sys.executable, "-c", script, GLEANER_COORDINATOR=self._address, **{**identity, **more}
        )

    def summer(self, host: int, *flags: str) -> subprocess.Popen[str]:
        proof = ("--coordinator", self._address, "--token-file", self._token)
        return self._hosts.start(host, str(SUMMER), *proof, *flags)


def end_of(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=TIMEOUT)
    return process.returncode, out, err


def test_a_worker_is_reached_where_it_reaches_the_coordinator(hosts: Hosts, tmp_path: Path) -> None:
    job = Job(hosts, tmp_path)
    for worker in [job.worker(0), job.worker(1, GLEANER_ADDRESS="0.0.0.0:0")]:
        status, out, err = end_of(worker)
        assert status == 0 and "[2. 2. 2.]" in out, err


@pytest.mark.parametrize("address", ["127.0.0.1:0", "localhost:0", "[::1]:0"])
def test_a_loopback_address_of_a_worker_is_named(hosts: Hosts, tmp_path: Path, address: str) -> None:
    job = Job(hosts, tmp_path)
    first = job.worker(0)
    status, _, err = end_of(job.worker(1, GLEANER_ADDRESS=address))
    assert status != 0
    assert "worker 0 and worker 1 are on different hosts" in err and "set GLEANER_ADDRESS" in err, err
    status, out, err = end_of(job.worker(1))  # with an address that others reach, the worker takes part
    assert status == 0 and "[2. 2. 2.]" in out, err
    assert end_of(first)[0] == 0


def test_a_loopback_address_of_a_summer_is_named(hosts: Hosts, tmp_path: Path) -> None:
    job = Job(hosts, tmp_path, summers=1)
    first = job.worker(0)
    status, _, err = end_of(job.summer(1, "--listen", f"{HOSTS[1]}:0", "--advertise", "localhost"))
    assert status != 0
    assert "summer" in err and "are on different hosts" in err and "--advertise" in err, err
    job.summer(1, "--listen", f"{HOSTS[1]}:0")
    for worker in [first, job.worker(1)]:
        status, out, err = end_of(worker)
        assert status == 0 and "[2. 2. 2.]" in out, err


def test_a_summer_does_not_advertise_all_addresses(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret of sixteen characters and more")
    command = [str(SUMMER), "--coordinator", "127.0.0.1:1", "--listen", "127.0.0.1:0", "--token-file"]
    for host in ("0.0.0.0", "::", "::ffff:0.0.0.0"):
        ended = subprocess.run(
            [*command, str(tmp_path / "token"), "--advertise", host], capture_output=True, text=True, timeout=TIMEOUT
        )
        assert ended.returncode != 0 and f"--advertise {host}: expected" in ended.stderr, ended.stderr


def test_a_peer_that_gets_out_of_reach_in_one_direction_is_named(hosts: Hosts, tmp_path: Path) -> None:
    """Worker 1 still reaches worker 0, but worker 0's host loses its route to the address of worker 1."""
    away = "198.51.100.2"
    hosts.add_address_behind(1, away)
    job = Job(hosts, tmp_path, "--strategy", "ring", "--deadline", "3")
    workers = [job.worker(0, LOOP), job.worker(1, LOOP, GLEANER_ADDRESS=f"{away}:0")]
    read_until(workers[1], "[2. 2. 2.]")
    hosts.cut_route_to(1, away)
    for worker in workers:
        status, _, err = end_of(worker)
        assert status != 0
        assert f"worker 0 reports: worker/1 at {away}" in err, err


RANK = """
import sys, torch, gleaner.torch.distributed
from gleaner import process
torch.distributed.init_process_group("gleaner", init_method=sys.argv[1], rank=int(sys.argv[2]), world_size=2)
ones = torch.ones(1 << 19)
torch.distributed.all_reduce(ones)
print(ones[0].item(), process.current().transports())
torch.distributed.destroy_process_group()
"""


class Ranks:
    """Two ranks of torch.distributed, without any variable of a launcher."""

    def __init__(self, hosts: Hosts) -> None:
        pytest.importorskip("torch")
        self._hosts = hosts

    def start(self, host: int, init_method: str, rank: int, **more: str) -> subprocess.Popen[str]:
        cleared = [word for name in ("MASTER_ADDR", "MASTER_PORT", "LOCAL_WORLD_SIZE") for word in ("-u", name)]
        command = ["env", *cleared, *(f"{name}={value}" for name, value in more.items())]
        return self._hosts.start(host, *command, sys.executable, "-c", RANK, init_method, str(rank))


def test_ranks_reach_rank_0_at_the_host_of_init_method(hosts: Hosts) -> None:
    ranks = Ranks(hosts)
    started = [ranks.start(rank, f"tcp://{HOSTS[0]}:29500", rank) for rank in range(2)]
    for rank in started:
        status, out, err = end_of(rank)
        assert status == 0 and out.startswith("2.0 "), err


def test_ranks_that_cannot_know_the_host_of_rank_0_say_so(hosts: Hosts, tmp_path: Path) -> None:
    ranks = Ranks(hosts)
    ranks.start(0, f"file://{tmp_path}/store", 0)
    status, _, err = end_of(ranks.start(1, f"file://{tmp_path}/store", 1))
    assert status != 0 and "set MASTER_ADDR" in err, err


def waiting_summer(hosts: Hosts, folder: Path) -> dict[str, str]:
    """Starts a summer on the second host that waits for jobs at port 7100 of all addresses. Returns its variables."""
    token = folder / "summers.token"
    token.write_text("0123456789abcdef0123456789abcdef")
    summer = hosts.start(1, str(SUMMER), "--await-jobs", "0.0.0.0:7100", "--token-file", str(token))
    read_until(summer, "waiting for jobs on ")
    return {"GLEANER_SUMMERS": f"{HOSTS[1]}:7100", "GLEANER_SUMMERS_TOKEN_FILE": str(token)}


def test_an_invited_summer_of_another_host_serves(hosts: Hosts, tmp_path: Path) -> None:
    """All ranks are on one host, at a loopback address. The summer learns from the invitation where they are."""
    variables = waiting_summer(hosts, tmp_path)
    ranks = Ranks(hosts)
    started = [ranks.start(0, "tcp://127.0.0.1:29500", rank, **variables) for rank in range(2)]
    for rank in started:
        status, out, err = end_of(rank)
        assert status == 0 and out.startswith("2.0 ") and "tcp: " in out and "summer/0" in out, out + err


def test_a_loopback_address_of_an_inviter_is_named(hosts: Hosts, tmp_path: Path) -> None:
    variables = waiting_summer(hosts, tmp_path)
    command = [str(GLEANER), "coordinator", "--listen", "127.0.0.1:0", "--workers", "1", "--token-file"]
    coordinator = hosts.start(0, *command, str(tmp_path / "token"), **variables)
    line = next(line for line in coordinator.stderr if "without an invited summer" in line)
    assert "leads each host to itself" in line and "--listen" in line
