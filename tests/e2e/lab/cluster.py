"""A handle for a cluster: starts a lab, sends commands to it, runs programs in it, and takes it down."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Optional

from . import cgroups
from .processes import HERE, LabError, binaries, require_commands
from .spec import NODE_GRACE_SECONDS, ClusterSpec, NodeSpec
from .template import Images, provide_template

NAME = "GLEANER_CLUSTER"  # environment variable with the cluster's name, for tests and for programs in a lab
WORKPLACE = HERE.parents[1] / "build" / "e2e"
COMMANDS = tuple("containerd runc ctr nft ip tc conntrack nsenter unshare setpriv etcd openssl".split())
UP_SECONDS = 300.0  # long enough for a busy machine
COMMAND_SECONDS = 600.0  # after which a command counts as hanging; commands wait up to 480 s by themselves


def require_inotify(nodes: int) -> None:
    limit = int(Path("/proc/sys/fs/inotify/max_user_instances").read_text())
    needed = 7 * nodes + 8
    if needed > limit:
        raise LabError(
            f"{nodes} nodes need about {needed} inotify instances, and this machine allows {limit} in all; "
            f"raise it with: sysctl fs.inotify.max_user_instances={4 * needed}"
        )


class Cluster:
    def __init__(self, name: str = "lab") -> None:
        if not name.isalnum() or len(name) > 12:
            raise LabError(f"expected up to 12 letters and digits for a cluster's name; got {name!r}")
        self.name = name
        self.folder = Path(f"/dev/shm/gleaner-cluster-{name}")
        self._disk = WORKPLACE / f"cluster-{name}"
        self._programs = binaries("kube", "helm")

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "plane" / "admin.conf"

    def alive(self) -> bool:
        """Returns whether the lab runs. The lab's process holds a lock for as long as it lives."""
        try:
            lock = os.open(self.folder / "lab.lock", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(lock)
        return False

    def up(self, nodes: list[NodeSpec], node_grace_seconds: int = NODE_GRACE_SECONDS, bound: bool = False) -> float:
        """Starts the cluster, and waits until every node is Ready and Services and DNS work. Returns the seconds it
        took.

        If `bound`, the kernel kills the cluster when the calling process ends.
        """
        if os.geteuid() != 0:
            raise LabError("expected to be root: a cluster needs namespaces, mounts and cgroups")
        require_commands(*COMMANDS)
        cgroups.hierarchies()
        require_inotify(len(nodes))
        with self._alone():
            if self.alive():
                raise LabError(f"the cluster {self.name} is up already; take it down, or choose another --name")
            self._clean()
            template, used = provide_template(WORKPLACE, Images(WORKPLACE.parent / "images" / "oci"))
            start = time.monotonic()
            self.folder.mkdir(mode=0o700)
            spec = ClusterSpec(self.name, nodes, node_grace_seconds, str(template), str(self.folder), str(self._disk))
            spec.save(self.folder / "spec.json")
            try:
                self._start_lab(used, bound)
            except BaseException:
                self._end()
                raise
            finally:
                os.close(used)
            return time.monotonic() - start

    def down(self) -> None:
        """Ends the cluster. Leaves no process, mount, cgroup, link or file. Does nothing if the cluster is not up."""
        with self._alone():
            self._end()

    def ask(self, *command: str) -> dict[str, Any]:
        """Sends one of the commands of lab/main.py to the lab. Returns the answer."""
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(COMMAND_SECONDS)
        try:
            connection.connect(str(self.folder / "control"))
            with connection.makefile("rw") as stream:
                stream.write(" ".join(command) + "\n")
                stream.flush()
                answer: dict[str, Any] = json.loads(stream.readline() or '{"error": "the lab ended"}')
        except OSError as error:
            raise LabError(f"the cluster {self.name} is not up ({error})") from error
        finally:
            connection.close()
        if "error" in answer:
            raise LabError(answer["error"])
        return answer

    def inside(self) -> bool:
        """Returns whether this process runs in the lab itself, like the processes of `cluster run`."""
        network = self.folder / "network"
        return network.exists() and network.read_text() == str(Path("/proc/self/ns/net").readlink())

    def command(self, *command: str) -> list[str]:
        """Returns the command that runs `command` in the lab, both from the machine and from within the lab."""
        if self.inside():
            return list(command)
        if not self.alive():
            raise LabError(f"the cluster {self.name} is not up")
        enter = ["nsenter", "-t", str(self._first_process()), "--mount", "--net", "--pid", "--"]
        # setpriv makes the command end with its nsenter; otherwise the command would survive a killed nsenter.
        return [*enter, "setpriv", "--pdeathsig", "KILL", "env", "-C", os.getcwd(), *command]

    def environment(self) -> dict[str, str]:
        """Returns the environment for programs in the lab, in which kubectl and helm are found and know the cluster."""
        path = f"{self._programs}:{os.environ.get('PATH', '/usr/bin:/bin')}"
        return {**os.environ, "PATH": path, "KUBECONFIG": str(self.kubeconfig), NAME: self.name}

    def run(
        self, *command: str, text: Optional[str] = None, timeout: float = COMMAND_SECONDS, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            self.command(*command), input=text, capture_output=True, text=True, timeout=timeout, env=self.environment()
        )
        if check and done.returncode != 0:
            raise LabError(f"`{' '.join(command)}` ended with {done.returncode}: {done.stderr.strip() or done.stdout}")
        return done

    def kubectl(self, *arguments: str, text: Optional[str] = None, timeout: float = COMMAND_SECONDS) -> str:
        return self.run("kubectl", *arguments, text=text, timeout=timeout).stdout

    def apply(self, *objects: dict[str, Any]) -> None:
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl("apply", "-f", "-", text=json.dumps(listed))

    def get(self, kind: str, name: str, namespace: str = "default") -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.kubectl("get", kind, name, "-n", namespace, "-o", "json"))
        return found

    def find(self, kind: str, name: str, namespace: str = "default") -> Optional[dict[str, Any]]:
        """Returns the object like get(), or None if it does not exist."""
        text = self.kubectl("get", kind, name, "-n", namespace, "-o", "json", "--ignore-not-found")
        found: Optional[dict[str, Any]] = json.loads(text) if text.strip() else None
        return found

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Holds a lock, so that only one `up` or `down` of this name runs at a time."""
        WORKPLACE.mkdir(parents=True, exist_ok=True)
        with (WORKPLACE / f"{self.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _start_lab(self, used: int, bound: bool) -> None:
        """Starts the lab's process, and waits until it is ready.

        The lab's first process keeps the file `used` open, which keeps the template from being removed.
        """
        # bash is the first process of the PID namespace: it reaps orphans, and its end ends all other processes.
        inner = ["bash", "-c", '"$@" & wait $!', "lab", sys.executable, "-m", "lab.main", str(self.folder)]
        spaces = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"]
        with (self.folder / "lab.log").open("w") as log:
            lab = subprocess.Popen(
                [*(["setpriv", "--pdeathsig", "KILL"] if bound else []), "unshare", *spaces, "--", *inner],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=HERE,
                env={**os.environ, "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"},
                start_new_session=True,
                pass_fds=[used],
            )
        (self.folder / "pid").write_text(str(lab.pid))
        assert lab.stdout is not None
        readable, _, _ = select.select([lab.stdout], [], [], UP_SECONDS)
        line = lab.stdout.readline().decode().strip() if readable else f"not ready in {UP_SECONDS:.0f} s"
        if not line.startswith("ready"):
            why = line or (self.folder / "lab.log").read_text().strip()
            raise LabError(f"the cluster {self.name} did not come up: {why}")

    def _first_process(self) -> int:
        """Returns the machine's process id of the lab's PID 1."""
        parent = int((self.folder / "pid").read_text())
        return int(Path(f"/proc/{parent}/task/{parent}/children").read_text().split()[0])

    def _end(self) -> None:
        if self.alive():
            first = os.pidfd_open(self._first_process())
            try:
                signal.pidfd_send_signal(first, signal.SIGKILL)
                # A pidfd becomes readable when its process has ended. PID 1 is the last process of its namespace to
                # end.
                if not select.select([first], [], [], 30)[0]:
                    raise LabError(f"the processes of {self.name} did not end in 30 s after SIGKILL")
            finally:
                os.close(first)
        self._clean()

    def _clean(self) -> None:
        cgroups.remove(self.name)
        shutil.rmtree(self._disk, ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)
