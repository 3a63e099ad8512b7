"""Faults of a job. A seed determines their kinds, targets, times and durations."""

from __future__ import annotations

import random
import re
import signal
import subprocess
import time
from dataclasses import dataclass, field
from typing import Callable

from job import Job, Summer


@dataclass
class Event:
    """One fault. `until` is the time at which the fault is undone, or the summer may start again. Times are those of
    time.time()."""

    kind: str
    begin: float
    until: float
    what: str
    addresses: list[str] = field(default_factory=list)  # addresses of the summers that the fault affects


class Faults:
    """Causes faults. Each method do_KIND causes one fault and returns it.

    No fault cuts a worker off for longer than the job's deadline.
    """

    def __init__(self, job: Job, kinds: list[str], seed: int) -> None:
        self._job, self._kinds = job, kinds
        self.random = random.Random(seed)
        self.events: list[Event] = []
        self._due: list[tuple[float, Callable[[], None]]] = []

    def lose_coordinator(self) -> Event:
        """Kills the coordinator for good. From then on only faults in HEALING happen, since plans can no longer
        change."""
        self._job.kill_coordinator()
        self._kinds = [kind for kind in self._kinds if kind in HEALING] or ["reset"]
        self.events.append(self._event("coordinator", 0, "SIGKILL the coordinator, for good", []))
        return self.events[-1]

    def cause_fault(self) -> Event:
        """Causes a fault of a random kind."""
        kind = self.random.choice(self._kinds)
        self.events.append(getattr(self, f"do_{kind}")())
        return self.events[-1]

    def update(self) -> None:
        """Undoes the faults whose time is over. The caller calls this several times a second."""
        now = time.monotonic()
        due = [action for at, action in self._due if at <= now]
        self._due = [(at, action) for at, action in self._due if at > now]
        for action in due:
            action()
        self._job.update()

    def undo_all(self) -> None:
        """Undoes all faults at once."""
        self._due = [(0.0, action) for _, action in self._due]
        self.update()

    # Faults of processes.

    def do_kill(self) -> Event:
        return self._end([self._summer()], signal.SIGKILL)

    def do_kill_all(self) -> Event:
        return self._end(self._job.summers, signal.SIGKILL)

    def do_kill_again(self) -> Event:
        """Kills a second summer while the job recovers from the loss of the first."""
        first, second = self.random.sample(self._job.summers, 2) if len(self._job.summers) > 1 else [self._summer()] * 2
        event = self._end([first], signal.SIGKILL)
        pause = self.random.uniform(0, 0.1)
        back_at = time.monotonic() + pause + self.random.uniform(0.1, 3)
        self._later(pause, lambda: second.end(signal.SIGKILL, back_at))
        event.what += f", and {1e3 * pause:.0f} ms later {second.host}"
        event.addresses.append(self._job.lab.address(second.host))
        return event

    def do_freeze(self) -> Event:
        summer, seconds = self._summer(), self._seconds(0.1, 4)
        summer.freeze(time.monotonic() + seconds)
        return self._event("freeze", seconds, f"SIGSTOP {summer.host} for {seconds:.1f} s", [summer])

    def do_drain(self) -> Event:
        return self._end([self._summer()], signal.SIGTERM)

    # Faults of links, at the switch.

    def do_cut(self) -> Event:
        """Takes a summer's link down."""
        summer, seconds = self._summer(), self._seconds(0.1, 4)
        self._cut(summer.host, seconds)
        return self._event("cut", seconds, f"{summer.host}'s link down for {seconds:.1f} s", [summer])

    def do_cut_worker(self) -> Event:
        """Takes a worker's link down. No other member can replace a worker, so the job waits until its deadline."""
        host, seconds = self._worker(), self._seconds(0.1, 2)
        self._cut(host, seconds)
        return self._event("cut_worker", seconds, f"{host}'s link down for {seconds:.1f} s", [])

    # Faults of packets.

    def do_drop(self) -> Event:
        """Drops all packets from one worker to one summer, so that connections stay half open."""
        summer, worker, seconds = self._summer(), self._worker(), self._seconds(0.1, 4)
        self._rule(summer.host, ["INPUT", "-s", self._job.lab.address(worker), "-j", "DROP"], seconds)
        return self._event("drop", seconds, f"packets {worker} to {summer.host} dropped for {seconds:.1f} s", [summer])

    def do_reset(self) -> Event:
        """Resets connections between one worker and one summer, and refuses new ones for a while."""
        summer, worker, seconds = self._summer(), self._worker(), self._seconds(0.05, 1)
        reject = ["-j", "REJECT", "--reject-with", "tcp-reset"]
        self._rule(summer.host, ["INPUT", "-p", "tcp", "-s", self._job.lab.address(worker), *reject], seconds)
        return self._event("reset", seconds, f"{worker} to {summer.host} reset for {seconds:.1f} s", [summer])

    # Faults by netem, if the kernel has it.

    def do_loss(self) -> Event:
        return self._netem("loss", f"loss {self.random.uniform(1, 20):.0f}%")

    def do_delay(self) -> Event:
        return self._netem("delay", f"delay {self.random.uniform(5, 100):.0f}ms {self.random.uniform(1, 5):.0f}ms")

    def do_duplicate(self) -> Event:
        return self._netem("duplicate", f"duplicate {self.random.uniform(5, 50):.0f}%")

    def do_reorder(self) -> Event:
        return self._netem("reorder", f"delay 5ms reorder {self.random.uniform(50, 95):.0f}% 50%")

    def do_corrupt(self) -> Event:
        return self._netem("corrupt", f"corrupt {self.random.uniform(0.5, 10):.1f}%")

    # Helpers.

    def _summer(self) -> Summer:
        return self.random.choice(self._job.summers)

    def _worker(self) -> str:
        return f"worker{self.random.randrange(self._job.lab.setting.workers)}"

    def _seconds(self, least: float, most: float) -> float:
        return self.random.uniform(least, most)

    def _event(self, kind: str, seconds: float, what: str, summers: list[Summer]) -> Event:
        now = time.time()
        return Event(kind, now, now + seconds, what, [self._job.lab.address(each.host) for each in summers])

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        self._due.append((time.monotonic() + seconds, action))

    def _end(self, summers: list[Summer], number: signal.Signals) -> Event:
        longest = 0.0
        event = self._event("drain" if number == signal.SIGTERM else "kill", 0, "", summers)
        if len(summers) > 1:
            event.kind = "kill_all"
        for summer in summers:
            seconds = self._seconds(0.1, 3)
            longest = max(longest, seconds)
            summer.end(number, time.monotonic() + seconds)
        event.until = event.begin + longest
        event.what = (
            f"{number.name} {' '.join(each.host for each in summers)}, started again after {longest:.1f} s at most"
        )
        return event

    def _cut(self, host: str, seconds: float) -> None:
        link = ["ip", "-n", self._switch(), "link", "set", host]
        run(*link, "down")
        self._later(seconds, lambda: run(*link, "up"))

    def _rule(self, host: str, rule: list[str], seconds: float) -> None:
        prefix = self._job.lab.prefix(host)
        run(*prefix, "iptables", "-A", *rule)
        self._later(seconds, lambda: run(*prefix, "iptables", "-D", *rule))

    def _netem(self, kind: str, how: str) -> Event:
        """Applies netem to the packets that a host sends, or to the packets that it receives."""
        lab = self._job.lab
        host, seconds = self.random.choice(lab.setting.hosts), self._seconds(0.5, 4)
        sends = self.random.random() < 0.5
        space, link = (lab.space(host), "eth0") if sends else (self._switch(), host)
        # netem queues packets. If the link has a shaper, netem must be below it.
        parent = re.search(r"qdisc tbf (\w+:)", run("tc", "-n", space, "qdisc", "show", "dev", link))
        place = ["parent", f"{parent.group(1)}1"] if parent else ["root"]
        run("tc", "-n", space, "qdisc", "replace", "dev", link, *place, "netem", "limit", "10000", *how.split())
        # A later netem fault replaces this qdisc and removes it, so this removal may fail.
        undo = ["tc", "-n", space, "qdisc", "del", "dev", link, *place]
        self._later(seconds, lambda: subprocess.run(undo, capture_output=True, check=False))
        direction = "sent packets" if sends else "received packets"
        return self._event(kind, seconds, f"netem {how} on {host}, {direction}, for {seconds:.1f} s", [])

    def _switch(self) -> str:
        lab = self._job.lab
        return lab.space("worker0").rsplit("-", 1)[0] + "-switch"


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
    return done.stdout


# Faults that a job survives without a coordinator: paths and members recover before the deadline.
HEALING = ["freeze", "cut", "cut_worker", "drop", "reset"]
NETEM = ["loss", "delay", "duplicate", "reorder", "corrupt"]
PLAIN = [name[3:] for name in vars(Faults) if name.startswith("do_") and name[3:] not in NETEM]
