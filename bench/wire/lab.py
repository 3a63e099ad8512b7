"""Creates hosts for measurements: a lab with shaped links (tests/lab/lab), or the loopback of one such host."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Callable, Optional

from wire import iperf

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "tests" / "lab" / "lab"
CONGESTION_CONTROL = "/proc/sys/net/ipv4/tcp_congestion_control"


def bits_per_second(rate: str) -> float:
    """Parses a rate in the notation of tc."""
    for unit, factor in (("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3)):
        if rate.endswith(unit):
            return float(rate[: -len(unit)]) * factor
    raise ValueError(f"a rate is written like 200mbit, not {rate!r}")


def bits(burst: str) -> float:
    """Returns the bits of a bucket size in the notation of tc, in which 128kb are 128 KiB."""
    if not burst.endswith("kb"):
        raise ValueError(f"a burst is written like 128kb, not {burst!r}")
    return float(burst[: -len("kb")]) * 8 * 1024


@dataclass(frozen=True)
class Setting:
    """The hosts worker0 ... and summer0 ... of a lab, and their links.

    Each link has `rate`, except for the hosts in `rates`. The rate "none" means links without a limit. An empty rate
    means one host without links, on whose loopback all members meet. If `pinned`, host i uses only core i modulo the
    number of cores, as if it were a separate machine; the loopback is never pinned. `tiers` and `uplinks` are the
    racks and pods of the workers and the rates of their uplinks, as in `lab up --tiers --uplink`; without tiers all
    hosts are at one switch."""

    workers: int
    summers: int
    rate: str = "200mbit"
    burst: str = "128kb"
    rates: tuple[tuple[str, str], ...] = ()
    pinned: bool = False
    tiers: tuple[int, ...] = ()
    uplinks: tuple[str, ...] = ()

    @property
    def loopback(self) -> bool:
        return not self.rate

    @property
    def is_shaped(self) -> bool:
        return self.rate not in ("", "none")

    @property
    def hosts(self) -> list[str]:
        return [f"worker{i}" for i in range(self.workers)] + [f"summer{j}" for j in range(self.summers)]

    def rate_of(self, host: str) -> str:
        return dict(self.rates).get(host, self.rate)

    def flags(self) -> list[str]:
        """Returns the flags of `lab up`."""
        if self.loopback:
            return ["--workers", "1", "--summers", "0", "--rate", "none"]
        flags = ["--workers", str(self.workers), "--summers", str(self.summers)]
        if self.tiers:
            flags += ["--tiers", ",".join(map(str, self.tiers)), "--uplink", ",".join(self.uplinks)]
        flags += ["--rate", self.rate, "--burst", self.burst]
        for kind, count in (("worker", self.workers), ("summer", self.summers)):
            if count:
                flags += [f"--{kind}-rates", ",".join(self.rate_of(f"{kind}{i}") for i in range(count))]
        return flags


class Lab:
    """The hosts of a setting. The with-statement creates and removes them."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.name = f"b{os.getpid() % 10**6}"
        self._folder = tempfile.TemporaryDirectory(prefix="gleaner-lab-")
        self.folder = Path(self._folder.name)
        self._entries: dict[str, dict[str, Any]] = {}
        self.coordinator: dict[str, Any] = {}
        self._known: dict[Hashable, Any] = {}

    def __enter__(self) -> Lab:
        path = self.folder / "hosts.json"
        self._lab("up", *self.setting.flags(), "--hosts-json", str(path))
        made = json.loads(path.read_text())
        if self.setting.loopback:
            self.coordinator = {**made["workers"][0], "address": "127.0.0.1"}
            self._entries = {host: dict(self.coordinator) for host in self.setting.hosts}
        else:
            self.coordinator = made["coordinator"]
            self._entries = dict(zip(self.setting.hosts, made["workers"] + made["summers"]))
        try:
            for host in self.setting.hosts:
                self._avoid_bbr(host)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        if self.setting.pinned and not self.setting.loopback:
            self._pin()
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        # The cleanup runs in a new session, so that a second Ctrl-C does not stop it.
        subprocess.run([PROGRAM, "down", "--name", self.name], capture_output=True, start_new_session=True)
        self._folder.cleanup()

    def entry(self, host: str) -> dict[str, Any]:
        return self._entries[host]

    def prefix(self, host: str) -> list[str]:
        """Returns the command prefix that runs a command on the host."""
        return list(self._entries[host]["prefix"])

    def starter(self) -> list[str]:
        """Returns the command prefix for a command that starts a job on all hosts."""
        return list(self.coordinator["prefix"])

    def space(self, host: str) -> str:
        """Returns the name of the host's network namespace."""
        return str(self._entries[host]["prefix"][-1])

    def address(self, host: str) -> str:
        return str(self._entries[host]["address"])

    def part(self, workers: int, summers: int, first_worker: int = 0) -> Part:
        """Returns a part of the lab with the given numbers of workers and summers."""
        chosen = tuple(f"worker{first_worker + i}" for i in range(workers)), tuple(f"summer{j}" for j in range(summers))
        missing = [host for host in chosen[0] + chosen[1] if host not in self._entries]
        if missing:
            raise ValueError(f"the lab has no {', '.join(missing)}: {self.setting}")
        return Part(self, *chosen)

    def payload_of(self, host: str) -> float:
        """Returns the TCP payload bits per second that the host's link carries in each direction while both are in
        use."""
        setting = self.setting
        if not setting.is_shaped:
            return self.once("payload", lambda: iperf.both_ways(self, *setting.hosts[:2]))
        like = [each for each in setting.hosts if setting.rate_of(each) == setting.rate][:2]
        # The measurement must be long against the shaper's burst: 128 KiB last 0.1 s at 10 Mbit/s.
        seconds = max(3, round(150e6 / bits_per_second(setting.rate)))
        payload = self.once("payload", lambda: iperf.both_ways(self, *like, seconds))
        return float(payload * bits_per_second(setting.rate_of(host)) / bits_per_second(setting.rate))

    def topology_file(self) -> Path:
        """Writes the lab's topology, with the bandwidths that payload_of() measures. Returns its path."""
        host = self.setting.hosts[0]
        topology = json.loads(self._lab("topology"))
        nominal = next(link["bandwidth"] for link in topology["links"] if link["a"] == host)
        for link in topology["links"]:
            link["bandwidth"] *= self.payload_of(host) / nominal
        path = self.folder / "topology.json"
        path.write_text(json.dumps(topology))
        return path

    @property
    def bucket(self) -> float:
        """The TCP payload bits that a link's shaper saves up while the link is idle, and then lets through at once."""
        host = self.setting.hosts[0]
        return bits(self.setting.burst) * self.payload_of(host) / bits_per_second(self.setting.rate_of(host))

    def once(self, key: Hashable, measure: Callable[[], Any]) -> Any:
        """Returns the result of `measure`, which is called only once per key, so that rows can share measurements."""
        if key not in self._known:
            self._known[key] = measure()
        return self._known[key]

    def _avoid_bbr(self, host: str) -> None:
        """Sets the host's TCP congestion control to Reno, which every kernel has and allows in a namespace.

        If the machine's default is BBR, it would slow the peers down. Gleaner does not use BBR in any case, so Reno
        makes the comparison fair."""
        command = [*self.prefix(host), "sh", "-c", f"echo reno > {CONGESTION_CONTROL}"]
        subprocess.run(command, check=True, capture_output=True)

    def _pin(self) -> None:
        cores = sorted(os.sched_getaffinity(0))
        for number, entry in enumerate(self._entries.values()):
            entry["prefix"] = ["taskset", "-c", str(cores[number % len(cores)]), *entry["prefix"]]

    def _lab(self, verb: str, *arguments: str) -> str:
        """Runs tests/lab/lab. Returns its output."""
        done = subprocess.run([PROGRAM, verb, "--name", self.name, *arguments], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        return done.stdout


@dataclass(frozen=True)
class Part:
    """The workers and summers of a lab on which a job runs."""

    lab: Lab
    workers: tuple[str, ...]
    summers: tuple[str, ...]

    @property
    def n(self) -> int:
        return len(self.workers)

    @property
    def k(self) -> int:
        return len(self.summers)

    def hosts_file(self) -> Path:
        """Writes the file for `gleaner run --hosts`. Returns its path."""
        path = self.lab.folder / f"hosts-{self.workers[0]}-{self.n}-{self.k}.json"
        hosts = {"workers": [self.lab.entry(host) for host in self.workers]}
        hosts |= {"summers": [self.lab.entry(host) for host in self.summers]}
        path.write_text(json.dumps({"coordinator": self.lab.coordinator, **hosts}, indent=1))
        return path
