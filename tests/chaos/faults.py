"""What can happen to a job, drawn from a seed: to whom, when and for how long."""

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
    """One fault. `until` is when it was undone, or the summer may come back; times as time.time() has them."""

    kind: str
    begin: float
    until: float
    what: str
    addresses: list[str] = field(default_factory=list)  # of the summers that it was meant for


class Faults:
    """Each do_KIND makes one happen and returns it. No worker is hurt for longer than the job's deadline."""

    def __init__(self, job: Job, kinds: list[str], seed: int) -> None:
        self._job, self._kinds = job, kinds
        self.dice = random.Random(seed)
        self.events: list[Event] = []
        self._due: list[tuple[float, Callable[[], None]]] = []

    def lose_coordinator(self) -> Event:
        """The last process that is killed. From here on only what heals happens: nobody is left who could plan."""
        self._job.kill_coordinator()
        self._kinds = [kind for kind in self._kinds if kind in HEALING] or ["reset"]
        self.events.append(self._event("coordinator", 0, "SIGKILL the coordinator, for good", []))
        return self.events[-1]

    def happen(self) -> Event:
        kind = self.dice.choice(self._kinds)
        self.events.append(getattr(self, f"do_{kind}")())
        return self.events[-1]

    def tend(self) -> None:
        """Undoes what has lasted its time; called several times a second."""
        now = time.monotonic()
        due = [action for at, action in self._due if at <= now]
        self._due = [(at, action) for at, action in self._due if at > now]
        for action in due:
            action()
        self._job.tend()

    def settle(self) -> None:
        """Undoes everything now."""
        self._due = [(0.0, action) for _, action in self._due]
        self.tend()

    # --- processes

    def do_kill(self) -> Event:
        return self._end([self._summer()], signal.SIGKILL)

    def do_kill_all(self) -> Event:
        return self._end(self._job.summers, signal.SIGKILL)

    def do_kill_again(self) -> Event:
        """Another one while the job recovers from the first."""
        first, second = self.dice.sample(self._job.summers, 2) if len(self._job.summers) > 1 else [self._summer()] * 2
        event = self._end([first], signal.SIGKILL)
        pause = self.dice.uniform(0, 0.1)
        back_at = time.monotonic() + pause + self.dice.uniform(0.1, 3)
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

    # --- links, at the switch

    def do_cut(self) -> Event:
        """A summer's link."""
        summer, seconds = self._summer(), self._seconds(0.1, 4)
        self._cut(summer.host, seconds)
        return self._event("cut", seconds, f"{summer.host}'s link down for {seconds:.1f} s", [summer])

    def do_cut_worker(self) -> Event:
        """For a worker no other can stand in: the job waits for it, as long as its deadline."""
        host, seconds = self._worker(), self._seconds(0.1, 2)
        self._cut(host, seconds)
        return self._event("cut_worker", seconds, f"{host}'s link down for {seconds:.1f} s", [])

    # --- packets

    def do_drop(self) -> Event:
        """What comes from one worker to one summer is lost, so that connections stay half open."""
        summer, worker, seconds = self._summer(), self._worker(), self._seconds(0.1, 4)
        self._rule(summer.host, ["INPUT", "-s", self._job.lab.address(worker), "-j", "DROP"], seconds)
        return self._event("drop", seconds, f"packets {worker} to {summer.host} dropped for {seconds:.1f} s", [summer])

    def do_reset(self) -> Event:
        """Connections between one worker and one summer break, and can't be made anew for a while."""
        summer, worker, seconds = self._summer(), self._worker(), self._seconds(0.05, 1)
        reject = ["-j", "REJECT", "--reject-with", "tcp-reset"]
        self._rule(summer.host, ["INPUT", "-p", "tcp", "-s", self._job.lab.address(worker), *reject], seconds)
        return self._event("reset", seconds, f"{worker} to {summer.host} reset for {seconds:.1f} s", [summer])

    # --- netem, where the kernel has it

    def do_loss(self) -> Event:
        return self._netem("loss", f"loss {self.dice.uniform(1, 20):.0f}%")

    def do_delay(self) -> Event:
        return self._netem("delay", f"delay {self.dice.uniform(5, 100):.0f}ms {self.dice.uniform(1, 5):.0f}ms")

    def do_duplicate(self) -> Event:
        return self._netem("duplicate", f"duplicate {self.dice.uniform(5, 50):.0f}%")

    def do_reorder(self) -> Event:
        return self._netem("reorder", f"delay 5ms reorder {self.dice.uniform(50, 95):.0f}% 50%")

    def do_corrupt(self) -> Event:
        return self._netem("corrupt", f"corrupt {self.dice.uniform(0.5, 10):.1f}%")

    # --- parts

    def _summer(self) -> Summer:
        return self.dice.choice(self._job.summers)

    def _worker(self) -> str:
        return f"worker{self.dice.randrange(self._job.lab.setting.workers)}"

    def _seconds(self, least: float, most: float) -> float:
        return self.dice.uniform(least, most)

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
        event.what = f"{number.name} {' '.join(each.host for each in summers)}, back {longest:.1f} s later at most"
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
        """On what a host sends, or on what it gets."""
        lab = self._job.lab
        host, seconds = self.dice.choice(lab.setting.hosts), self._seconds(0.5, 4)
        sends = self.dice.random() < 0.5
        space, link = (lab.space(host), "eth0") if sends else (self._switch(), host)
        # It keeps packets while it waits; below the shaper where there is one.
        parent = re.search(r"qdisc tbf (\w+:)", run("tc", "-n", space, "qdisc", "show", "dev", link))
        place = ["parent", f"{parent.group(1)}1"] if parent else ["root"]
        run("tc", "-n", space, "qdisc", "replace", "dev", link, *place, "netem", "limit", "10000", *how.split())
        # Nothing to remove when one that came later was undone already.
        undo = ["tc", "-n", space, "qdisc", "del", "dev", link, *place]
        self._later(seconds, lambda: subprocess.run(undo, capture_output=True, check=False))
        direction = "what it sends" if sends else "what it gets"
        return self._event(kind, seconds, f"netem {how} on {host}, {direction}, for {seconds:.1f} s", [])

    def _switch(self) -> str:
        lab = self._job.lab
        return lab.space("worker0").rsplit("-", 1)[0] + "-switch"


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
    return done.stdout


# What a job outlives without a coordinator: paths that heal, and members that go on, before the deadline.
HEALING = ["freeze", "cut", "cut_worker", "drop", "reset"]
NETEM = ["loss", "delay", "duplicate", "reorder", "corrupt"]
PLAIN = [name[3:] for name in vars(Faults) if name.startswith("do_") and name[3:] not in NETEM]
