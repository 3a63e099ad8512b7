"""The hosts and switches of a lab as values: a tree of switches with the hosts at its leaves. Pure.

*Tiers* describe the tree as --stages of blueconnect does, from the hosts outwards: tiers 3, 2, 2 are 3 hosts at each
switch rack0, rack1, ..., 2 racks below each switch pod0, pod1, and 2 pods below the switch core. Two tiers have racks
below the core. Without tiers all hosts are at the core. The link from a rack or pod to the switch above it is its
*uplink*, which has the name of the rack or pod.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

CORE = "core"
LEVELS = ("rack", "pod")  # from the hosts outwards
PAYLOAD = 1448 / 1514  # the share of a link's rate that is TCP payload


class LabError(Exception):
    """An error that the user can correct."""


@dataclass(frozen=True)
class Fabric:
    """Each of `above` and `rates` has an entry for each link: the switch above the host or switch that the link is
    named after, and the rate in the notation of tc, or "none". `hosts` has workers, then summers."""

    hosts: list[str] = field(default_factory=list)
    switches: list[str] = field(default_factory=lambda: [CORE])  # each after the switch above it
    above: dict[str, str] = field(default_factory=dict)
    rates: dict[str, str] = field(default_factory=dict)

    @property
    def uplinks(self) -> list[str]:
        return [switch for switch in self.switches if switch != CORE]


def number_of(name: str) -> int:
    """Returns the number at the end of a host's or switch's name."""
    return int(name.lstrip("abcdefghijklmnopqrstuvwxyz"))


def host_order(host: str) -> tuple[bool, int]:
    return not host.startswith("worker"), number_of(host)


def switch_order(switch: str) -> tuple[int, int]:
    """Orders switches from the core to the racks."""
    if switch == CORE:
        return -len(LEVELS), 0
    return -LEVELS.index(switch.rstrip("0123456789")), number_of(switch)


def parse_tiers(text: str) -> list[int]:
    """Parses --tiers, such as 3,2,2."""
    parts = text.split(",")
    if not 2 <= len(parts) <= len(LEVELS) + 1 or not all(part.isdigit() and int(part) > 0 for part in parts):
        raise LabError(f"--tiers {text}: expected hosts, racks and perhaps pods, such as 4,2 or 3,2,2")
    return [int(part) for part in parts]


def parse_racks(text: str) -> list[int]:
    """Parses --racks, such as 2x4: racks, and hosts of each. Returns the tiers."""
    racks, cross, hosts = text.partition("x")
    if not (cross and racks.isdigit() and hosts.isdigit() and int(racks) > 0 and int(hosts) > 0):
        raise LabError(f"--racks {text}: expected RACKSxHOSTS, such as 2x4")
    return [int(hosts), int(racks)]


def tree_of(tiers: list[int], uplink_rates: list[str]) -> tuple[list[str], dict[str, str], dict[str, str]]:
    """Returns the switches, the switch above each, and the rates of uplinks. `uplink_rates` has one rate for the
    uplinks of each level, from the racks outwards, or one for all."""
    levels = len(tiers) - 1
    if len(uplink_rates) not in (1, levels):
        raise LabError(f"--uplink names {len(uplink_rates)} rates; give one, or {levels}: from the racks outwards")
    switches, above, rates = [CORE], {}, {}
    for level in reversed(range(levels)):
        for number in range(math.prod(tiers[level + 1 :])):
            switch = f"{LEVELS[level]}{number}"
            switches.append(switch)
            above[switch] = CORE if level == levels - 1 else f"{LEVELS[level + 1]}{number // tiers[level + 1]}"
            rates[switch] = uplink_rates[level % len(uplink_rates)]
    return switches, above, rates


def make(
    tiers: list[int],
    workers: list[str],
    summers: list[str],
    uplink_rates: list[str],
    exceptions: dict[str, str],
) -> Fabric:
    """Returns a fabric whose workers and summers have the given rates. `exceptions` replaces rates, by names of links.

    The workers fill one rack after the other; summer j is in rack j modulo the number of racks."""
    switches, above, rates = tree_of(tiers, uplink_rates) if tiers else ([CORE], {}, {})
    racks = len(workers) // tiers[0] if tiers else 1
    for i, rate in enumerate(workers):
        above[f"worker{i}"] = f"rack{i // tiers[0]}" if tiers else CORE
        rates[f"worker{i}"] = rate
    for j, rate in enumerate(summers):
        above[f"summer{j}"] = f"rack{j % racks}" if tiers else CORE
        rates[f"summer{j}"] = rate
    for name in exceptions:
        if name not in rates:
            raise LabError(f"--rates: there is no link {name}; links are {', '.join(rates)}")
    hosts = [name for name in above if name not in switches]
    return Fabric(hosts, switches, above, rates | exceptions)


def place_of(fabric: Fabric, host: str) -> list[int]:
    """Returns the host's place, from outer to inner: the numbers of the switches from below the core to the host's
    rack, and the host's position at its switch."""
    slot = [other for other in fabric.hosts if fabric.above[other] == fabric.above[host]].index(host)
    place, switch = [slot], fabric.above[host]
    while switch != CORE:
        place.insert(0, number_of(switch))
        switch = fabric.above[switch]
    return place


def topology_of(fabric: Fabric, bits_per_second: dict[str, float]) -> dict[str, list[dict[str, object]]]:
    """Returns the file of docs/topology.md. `bits_per_second` has the rate of each link; the file has the TCP payload
    that the rate carries. Links have no latency, since the lab adds none."""
    missing = [name for name in fabric.above if name not in bits_per_second]
    if missing:
        raise LabError(
            f"the links {', '.join(missing)} have no rate, so their bandwidth is unknown; `lab rate` sets one"
        )
    return {
        "hosts": [{"name": host, "place": place_of(fabric, host)} for host in fabric.hosts],
        "switches": [{"name": switch} for switch in fabric.switches],
        "links": [
            {"a": name, "b": fabric.above[name], "bandwidth": bits_per_second[name] * PAYLOAD, "latency_us": 0}
            for name in [*fabric.hosts, *fabric.uplinks]
        ],
    }
