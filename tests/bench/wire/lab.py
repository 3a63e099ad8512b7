"""A lab (tests/lab/lab) for as long as a measurement takes, and what its links carry."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Optional

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = ROOT / "tests" / "lab" / "lab"


def bits_per_second(rate: str) -> float:
    """Of a rate as tc writes it."""
    for unit, factor in (("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3)):
        if rate.endswith(unit):
            return float(rate[: -len(unit)]) * factor
    raise ValueError(f"a rate is written like 200mbit, not {rate!r}")


class Lab:
    """Hosts worker0 ... and summer0 ...; `rate` is each link's, `rates` single hosts' ({"summer1": "20mbit"})."""

    def __init__(
        self, workers: int, summers: int, rate: str, burst: str = "128kb", rates: Optional[dict[str, str]] = None
    ) -> None:
        self.workers, self.summers, self.rate, self.burst, self.rates = workers, summers, rate, burst, rates or {}
        self.name = f"b{os.getpid() % 10**6}"
        self._folder = tempfile.TemporaryDirectory(prefix="gleaner-lab-")
        self.folder = Path(self._folder.name)
        self.hosts_file = self.folder / "hosts.json"
        self.hosts: dict[str, Any] = {}
        self._payload = 0.0

    def __enter__(self) -> Lab:
        rates = {
            kind: ",".join(self.rate_of(f"{kind}{i}") for i in range(count))
            for kind, count in (("worker", self.workers), ("summer", self.summers))
        }
        flags = ["--workers", self.workers, "--summers", self.summers, "--rate", self.rate, "--burst", self.burst]
        flags += ["--worker-rates", rates["worker"], "--hosts-json", self.hosts_file]
        if self.summers:
            flags += ["--summer-rates", rates["summer"]]
        self._lab("up", *flags)
        self.hosts = json.loads(self.hosts_file.read_text())
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        # In a session of its own: a second Ctrl-C must not stop the cleaning up.
        subprocess.run([PROGRAM, "down", "--name", self.name], capture_output=True, start_new_session=True)
        self._folder.cleanup()

    def rate_of(self, host: str) -> str:
        return self.rates.get(host, self.rate)

    def prefix(self, host: str) -> list[str]:
        kind, number = host[:6] + "s", int(host[6:])
        return list(self.hosts[kind][number]["prefix"])

    def address(self, host: str) -> str:
        return str(self.hosts[host[:6] + "s"][int(host[6:])]["address"])

    def payload(self) -> float:
        """Bits of TCP payload a second that a link of `rate` carries each way while both are in use: iperf3 --bidir."""
        if self._payload == 0:
            ends = [host for host in self._all() if self.rate_of(host) == self.rate][:2]
            self._payload = measure(self, *ends)
        return self._payload

    def payload_of(self, host: str) -> float:
        rate = self.rate_of(host)
        return self.payload() * (1 if rate == self.rate else bits_per_second(rate) / bits_per_second(self.rate))

    def _all(self) -> list[str]:
        return [f"worker{i}" for i in range(self.workers)] + [f"summer{j}" for j in range(self.summers)]

    def _lab(self, verb: str, *arguments: object) -> None:
        command = [str(PROGRAM), verb, "--name", self.name, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())


def measure(lab: Lab, one: str, other: str, seconds: int = 5) -> float:
    server = subprocess.Popen([*lab.prefix(one), "iperf3", "-s", "-1"], stdout=subprocess.DEVNULL)
    try:
        time.sleep(0.5)
        command = [*lab.prefix(other), "iperf3", "-c", lab.address(one), "--bidir", "-t", str(seconds), "-O", "1", "-J"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 30)
        ends = json.loads(done.stdout)["end"]
        ways = [ends[name]["bits_per_second"] for name in ("sum_received", "sum_received_bidir_reverse")]
        return float(sum(ways) / 2)
    finally:
        server.kill()
        server.wait()
