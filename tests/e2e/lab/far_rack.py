"""A rack behind an uplink: nodes whose cables lead to a bridge of their own, which a delay line (delay_line.py) and two
shapers join to the bridge of the cluster."""

from __future__ import annotations

import sys
from pathlib import Path

from .processes import HERE, Child, devices, output_of
from .spec import CABLE_BURST, CABLE_QUEUE

BRIDGE = "rack"
# Each veth pair has a port of a bridge, and an end of the delay line.
PORTS = {"rack-up": BRIDGE, "rack-down": "cluster"}
ENDS = {"rack-up": "line-up", "rack-down": "line-down"}


class FarRack:
    def __init__(self, log: Path) -> None:
        self._log = log
        self._links: list[str] = []
        self._line: Child | None = None

    def build(self, links: list[str], rate: str, delay_us: int) -> None:
        """Moves the cables of nodes to the rack, whose uplink has the rate each way ("100mbit") and a delay of
        microseconds each way."""
        self.remove()
        self._links = links
        output_of("ip", "link", "add", BRIDGE, "type", "bridge")
        for port, bridge in PORTS.items():
            output_of("ip", "link", "add", port, "type", "veth", "peer", "name", ENDS[port])
            shaper = ["tbf", "rate", rate, "burst", CABLE_BURST, "latency", CABLE_QUEUE]
            output_of("tc", "qdisc", "replace", "dev", port, "root", *shaper)
            output_of("ip", "link", "set", port, "master", bridge, "up")
            output_of("ip", "link", "set", ENDS[port], "up")
        output_of("ip", "link", "set", BRIDGE, "up")
        command = [sys.executable, "-m", "lab.delay_line", *ENDS.values(), str(delay_us)]
        self._log.write_text("")
        self._line = Child("the delay line", command, self._log, {"PYTHONPATH": str(HERE)})
        self._line.start()
        self._line.wait_until(lambda: "ready" in self._log.read_text(), 10)
        for link in links:
            output_of("ip", "link", "set", link, "master", BRIDGE)

    def remove(self) -> None:
        """Moves the cables back. Does nothing if there is no rack."""
        here = devices()
        for link in here.intersection(self._links):  # a node that is off has no cable
            output_of("ip", "link", "set", link, "master", "cluster")
        self._links = []
        if self._line is not None:
            self._line.kill()
            self._line = None
        for device in here.intersection((*PORTS, BRIDGE)):
            output_of("ip", "link", "delete", device)
