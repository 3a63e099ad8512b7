"""Runs iperf3 between two hosts, to measure the capacity of a link and the CPU time that TCP takes."""

from __future__ import annotations

import contextlib
import json
import subprocess
from typing import TYPE_CHECKING, Any

from wire import stolen

if TYPE_CHECKING:
    from wire.lab import Lab


class Server:
    """Runs `iperf3 -s` on a host, for one test."""

    def __init__(self, lab: Lab, host: str) -> None:
        self._lab, self._host = lab, host
        command = [*lab.prefix(host), "iperf3", "-s", "-1", "--forceflush"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def __enter__(self) -> Server:
        said = ""
        for line in self._process.stdout or []:
            if "listening" in line:
                return self
            said += line
        raise RuntimeError(f"iperf3 -s does not listen on {self._host}: {said.strip()}")

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def client(self, host: str, *flags: str) -> subprocess.Popen[str]:
        command = [*self._lab.prefix(host), "iperf3", "-c", self._lab.address(self._host), "-J", *flags]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def end_of(client: subprocess.Popen[str], seconds: float) -> dict[str, Any]:
    try:
        said = json.loads(client.communicate(timeout=seconds + 30)[0] or "{}")
    finally:
        client.kill()
        client.wait()
    if "error" in said or not said.get("end"):
        raise RuntimeError(f"iperf3: {said.get('error', 'it said nothing')}")
    return dict(said["end"])


def both_ways(lab: Lab, one: str, other: str, seconds: int = 3) -> float:
    """Returns the payload bits per second in each direction while both directions are in use.

    Returns the best of two runs, since the capacity of a link is a maximum that a delayed run does not reach. Makes
    more runs if other virtual machines disturbed both."""
    found: list[float] = []
    undisturbed = False
    while len(found) < 2 or (not undisturbed and len(found) < stolen.RUNS):
        with stolen.StealSampler() as sampler:
            found.append(both_ways_once(lab, one, other, seconds))
        undisturbed |= sampler.share() <= stolen.LIMIT
    return max(found)


def both_ways_once(lab: Lab, one: str, other: str, seconds: int) -> float:
    with Server(lab, one) as server:
        end = end_of(server.client(other, "--bidir", "-t", str(seconds), "-O", "1"), seconds)
    return float(sum(end[name]["bits_per_second"] for name in ("sum_received", "sum_received_bidir_reverse")) / 2)


def processor_seconds_per_byte(lab: Lab, pairs: list[tuple[str, str]], seconds: int, sends: bool) -> float:
    """Returns the servers' CPU seconds per byte, while all pairs (server, client) run at the same time.

    The servers send if `sends`, and receive otherwise.
    """
    flags = ["-t", str(seconds), *(["-R"] if sends else [])]
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(Server(lab, server)) for server, _ in pairs]
        clients = [server.client(host, *flags) for server, (_, host) in zip(servers, pairs)]
        ends = [end_of(client, seconds) for client in clients]
    used = sum(end["cpu_utilization_percent"]["remote_total"] / 100 * end["sum_received"]["seconds"] for end in ends)
    return float(used / sum(end["sum_received"]["bytes"] for end in ends))
