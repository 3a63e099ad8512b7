"""Makes, reads and removes the network namespaces, bridges and shapers of a lab, with ip and tc.

A lab NAME has a namespace glab-NAME-HOST for each host, and glab-NAME-switch for its bridges, which have the names of
the switches. The host's end of a link is eth0, and the switch's end has the host's name; the ends of the uplink of
switch S are S-up at S, and S-down at the switch above. Nothing else is kept: a lab's fabric is read from the kernel.
"""

from __future__ import annotations

import ipaddress
import json
import os
import signal
import subprocess

from fabric import CORE, Fabric, LabError, host_order, switch_order

PREFIX = "glab"  # prefix of all names that a lab makes: namespaces glab-NAME-HOST, the machine's link glabNAME
SUBNETS = [ipaddress.ip_network(f"10.213.{third}.0/24") for third in range(256)]
GATEWAY = 254  # the number of the machine itself in the subnet
# With a burst below the size of a GSO packet (64 KiB), tbf would split packets; a much larger burst would hide stalls.
BURST = "128kb"
LATENCY = "50ms"


def run(*command: str, given: str | None = None) -> str:
    done = subprocess.run(command, capture_output=True, text=True, input=given)
    if done.returncode != 0:
        raise LabError(f"`{' '.join(command)}` failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def namespace(name: str, host: str) -> str:
    return f"{PREFIX}-{name}-{host}"


def namespaces(name: str | None = None) -> list[str]:
    """Returns the network namespaces of one lab, or of all labs."""
    start = f"{PREFIX}-" if name is None else f"{PREFIX}-{name}-"
    return sorted(line.split()[0] for line in run("ip", "netns", "list").splitlines() if line.startswith(start))


def hosts_of(name: str) -> list[str]:
    found = [space.rsplit("-", 1)[1] for space in namespaces(name)]
    return sorted((host for host in found if host != "switch"), key=host_order)


def free_subnet() -> ipaddress.IPv4Network:
    """Returns the first subnet that overlaps no address and no route of this machine, except default routes."""
    used = []
    for address in json.loads(run("ip", "-json", "-4", "addr")):
        used += [ipaddress.ip_network(f"{info['local']}/{info['prefixlen']}", False) for info in address["addr_info"]]
    for route in json.loads(run("ip", "-json", "-4", "route", "show", "table", "all")):
        if route["dst"] != "default":
            used.append(ipaddress.ip_network(route["dst"], False))
    for subnet in SUBNETS:
        if not any(subnet.overlaps(other) for other in used):
            return subnet
    raise LabError(f"no free /24 between {SUBNETS[0]} and {SUBNETS[-1]}; end a lab with `lab down --all`")


def ends_of(name: str, link: str, is_host: bool) -> list[tuple[str, str]]:
    """Returns the namespaces and devices at the two ends of a link; each sends in one direction."""
    switch = namespace(name, "switch")
    if is_host:
        return [(namespace(name, link), "eth0"), (switch, link)]
    return [(switch, f"{link}-up"), (switch, f"{link}-down")]


def shape(name: str, link: str, is_host: bool, rate: str, burst: str, verb: str = "replace") -> None:
    """Sets the rate of a link in both directions: each end shapes the packets that it sends."""
    shaper = ["tbf", "rate", rate, "burst", burst, "latency", LATENCY]
    for space, device in ends_of(name, link, is_host):
        run("tc", "-n", space, "qdisc", verb, "dev", device, "root", *shaper)


def add_host(name: str, host: str, above: str, address: str) -> None:
    space, switch = namespace(name, host), namespace(name, "switch")
    run("ip", "netns", "add", space)
    link = ["link", "add", "eth0", "address", mac(address), "type", "veth", "peer", "name", host, "netns", switch]
    run("ip", "-n", space, *link)
    run("ip", "-n", space, "addr", "add", address, "dev", "eth0")
    for link in ("lo", "eth0"):
        run("ip", "-n", space, "link", "set", link, "up")
    run("ip", "-n", switch, "link", "set", host, "master", above, "up")


def add_switches(name: str, fabric: Fabric) -> None:
    switch = namespace(name, "switch")
    run("ip", "netns", "add", switch)
    batch = "".join(f"link add {bridge} type bridge\nlink set {bridge} up\n" for bridge in fabric.switches)
    for bridge in fabric.uplinks:
        batch += f"link add {bridge}-up type veth peer name {bridge}-down\n"
        batch += f"link set {bridge}-up master {bridge} up\n"
        batch += f"link set {bridge}-down master {fabric.above[bridge]} up\n"
    run("ip", "-n", switch, "-batch", "-", given=batch)


def connect_machine(name: str, address: str) -> None:
    """Connects the machine itself to the core, by a link without a shaper."""
    switch, link = namespace(name, "switch"), f"{PREFIX}{name}"
    veth = ["type", "veth", "peer", "name", "machine", "netns", switch]
    run("ip", "link", "add", link, "address", mac(address), *veth)
    run("ip", "-n", switch, "link", "set", "machine", "master", CORE, "up")
    run("ip", "addr", "add", address, "dev", link)
    run("ip", "link", "set", link, "up")


def mac(address: str) -> str:
    """Returns a locally administered MAC address that is derived from the IP address."""
    return "02:00:" + ":".join(f"{int(part):02x}" for part in address.split("/")[0].split("."))


def introduce(name: str, subnet: ipaddress.IPv4Network, hosts: list[str]) -> None:
    """Tells every host the MAC addresses of all others. The kernel keeps addresses that hosts discover themselves in
    one table of 1024 entries for all namespaces; 32 hosts that all talk to each other would exceed it."""
    addresses = [str(subnet[number]) for number in range(1, len(hosts) + 1)]
    ends = [(["-n", namespace(name, host)], "eth0", address) for host, address in zip(hosts, addresses)]
    ends.append(([], f"{PREFIX}{name}", str(subnet[GATEWAY])))
    for where, link, own in ends:
        others = [address for *_, address in ends if address != own]
        batch = "".join(f"neigh replace {to} lladdr {mac(to)} dev {link} nud permanent\n" for to in others)
        run("ip", *where, "-batch", "-", given=batch)


def read_fabric(name: str) -> tuple[Fabric, dict[str, float]]:
    """Returns the fabric of a lab that is up, without rates, and the bits per second of the links that have a
    shaper."""
    space, hosts = namespace(name, "switch"), hosts_of(name)
    if not hosts:
        raise LabError(f"lab {name} is not up")
    links = json.loads(run("ip", "-n", space, "-json", "link", "show"))
    bridges = json.loads(run("ip", "-n", space, "-json", "link", "show", "type", "bridge"))
    master = {link["ifname"]: link["master"] for link in links if "master" in link}
    switches = sorted((bridge["ifname"] for bridge in bridges), key=switch_order)
    above = {host: master[host] for host in hosts}
    above |= {switch: master[f"{switch}-down"] for switch in switches if switch != CORE}
    shapers = json.loads(run("tc", "-n", space, "-json", "qdisc", "show"))
    rates = {shaper["dev"]: 8.0 * shaper["options"]["rate"] for shaper in shapers if shaper["kind"] == "tbf"}
    device = {link: ends_of(name, link, link in hosts)[1][1] for link in above}
    return Fabric(hosts, switches, above), {link: rates[end] for link, end in device.items() if end in rates}


def take_down(name: str) -> None:
    """Kills all processes on the lab's hosts, and removes the lab's namespaces and links, also after a failed `up`."""
    ignored = [signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    subprocess.run(["ip", "link", "del", f"{PREFIX}{name}"], capture_output=True)
    for space in namespaces(name):
        for pid in run("ip", "netns", "pids", space).split():
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                continue
        subprocess.run(["ip", "netns", "del", space], capture_output=True)
    for number, handler in zip((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), ignored):
        signal.signal(number, handler)
