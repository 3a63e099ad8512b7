"""Runs etcd and kube-apiserver, and kube-controller-manager on request, as children of this process.

All files are in one folder in memory, which stop() removes. A ControlPlane is not thread-safe. The thread that starts
it must live as long as the control plane, since the children end with that thread. Methods raise LabError."""

from __future__ import annotations

import http.client
import json
import secrets
import signal
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Optional

from .folders import OwnedFolder
from .pki import write_kubeconfig, write_pki
from .processes import Child, LabError, binaries, free_ports, require_commands

SERVICES = "10.96.0.0/16"
READY_SECONDS = 180.0


@dataclass(frozen=True)
class User:
    """A user whom the API server authenticates by a token."""

    name: str
    token: str
    groups: tuple[str, ...] = ()


@dataclass
class Listen:
    """The address on which the API server listens, and the address that it advertises in the cluster."""

    address: str = "127.0.0.1"
    port: int = 0  # 0: any free port
    advertise: str = ""  # empty: the Service "kubernetes" has no endpoint
    names: list[str] = field(default_factory=list)  # further addresses in its certificate


class ControlPlane:
    def __init__(
        self,
        users: Sequence[User] = (),
        controllers: bool = False,
        listen: Optional[Listen] = None,
        apiserver_flags: Sequence[str] = (),
        controller_flags: Sequence[str] = (),
        folder: Optional[Path] = None,
    ) -> None:
        """Prepares a control plane.

        `folder` is an empty folder, which the caller removes. By default stop() removes a folder in memory.
        """
        self._listen = listen or Listen()
        self._users = list(users)
        self._with_controllers = controllers
        self._apiserver_flags = list(apiserver_flags)
        self._controller_flags = list(controller_flags)
        self._given_folder = folder
        self._folder: Optional[OwnedFolder] = None
        self._children: dict[str, Child] = {}
        self.admin_token = secrets.token_hex(16)

    def __enter__(self) -> ControlPlane:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.stop()

    @property
    def dir(self) -> Path:
        if self._given_folder is not None:
            return self._given_folder
        if self._folder is None:
            raise LabError("the control plane was not started")
        return self._folder.path

    @property
    def kubeconfig(self) -> Path:
        return self.dir / "admin.conf"

    @property
    def server(self) -> str:
        return f"https://{self._listen.address}:{self._port}"

    @property
    def pids(self) -> dict[str, int]:
        return {name: child.pid for name, child in self._children.items() if child.alive}

    def describe(self) -> dict[str, Any]:
        return {
            "kubeconfig": str(self.kubeconfig),
            "server": self.server,
            "ca": str(self.dir / "ca.crt"),
            "admin_token": self.admin_token,
            "pids": self.pids,
            "dir": str(self.dir),
        }

    def start(self) -> None:
        """Starts the programs, and waits until the API server is ready."""
        require_commands("etcd", "openssl", "setpriv")
        programs = binaries("kube")
        if self._given_folder is None:
            self._folder = OwnedFolder("gleaner-plane-")
        etcd_port, peer_port, self._port = free_ports(3)
        self._port = self._listen.port or self._port
        self._etcd_port = etcd_port
        write_pki(self.dir, sorted({"127.0.0.1", "10.96.0.1", self._listen.address, *self._listen.names}))
        users = [User("admin", self.admin_token, ("system:masters",)), *self._users]
        lines = [f'{user.token},{user.name},{user.name},"{",".join(user.groups)}"\n' for user in users]
        (self.dir / "tokens.csv").write_text("".join(lines))
        write_kubeconfig(self.kubeconfig, self.server, self.dir / "ca.crt", self.admin_token)
        self._start_child("etcd", self._etcd_command(etcd_port, peer_port))
        apiserver = self._start_child("apiserver", self._apiserver_command(programs))
        apiserver.wait_until(self._ready, READY_SECONDS)
        if self._with_controllers:
            self._start_child("controllers", self._controllers_command(programs))

    def stop(self, keep: bool = False) -> None:
        for child in reversed(list(self._children.values())):
            child.kill()
        self._children.clear()
        if self._folder is not None:
            self._folder.release(keep)
            self._folder = None

    def kill_apiserver(self) -> None:
        self._child("apiserver").signal(signal.SIGKILL)
        self._child("apiserver").kill()

    def restart_apiserver(self) -> None:
        """Restarts the API server at the same address, and waits until it is ready."""
        self._child("apiserver").kill()
        self._child("apiserver").start()
        self._child("apiserver").wait_until(self._ready, READY_SECONDS)

    def pause(self) -> None:
        """Stops the API server by SIGSTOP: it answers no request, but its connections stay open."""
        self._child("apiserver").signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._child("apiserver").signal(signal.SIGCONT)

    def compact(self) -> None:
        """Makes etcd forget all versions but the current one. The API server's watch cache lasts until its next
        start."""
        revision = self._ask_etcd("/v3/kv/range", {"key": "AA=="})["header"]["revision"]
        self._ask_etcd("/v3/kv/compaction", {"revision": revision, "physical": True})

    def _child(self, name: str) -> Child:
        if name not in self._children:
            raise LabError(f"{name} was not started")
        return self._children[name]

    def _start_child(self, name: str, command: list[str]) -> Child:
        self._children[name] = Child(name, command, self.dir / f"{name}.log")
        self._children[name].start()
        return self._children[name]

    def _etcd_command(self, port: int, peer_port: int) -> list[str]:
        clients, peers = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer_port}"
        return [
            "etcd",
            f"--data-dir={self.dir / 'etcd'}",
            f"--listen-client-urls={clients}",
            f"--advertise-client-urls={clients}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            "--logger=zap",
            "--log-level=error",
            "--unsafe-no-fsync",
        ]

    def _apiserver_command(self, programs: Path) -> list[str]:
        # The address must not be loopback. Without endpoints no client uses it, so an address reserved for
        # documentation will do.
        advertise = self._listen.advertise or "192.0.2.1"
        flags = [
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            f"--bind-address={self._listen.address}",
            f"--secure-port={self._port}",
            f"--advertise-address={advertise}",
            f"--endpoint-reconciler-type={'master-count' if self._listen.advertise else 'none'}",
            f"--tls-cert-file={self.dir / 'apiserver.crt'}",
            f"--tls-private-key-file={self.dir / 'apiserver.key'}",
            f"--token-auth-file={self.dir / 'tokens.csv'}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self.dir / 'accounts.pub'}",
            f"--service-account-signing-key-file={self.dir / 'accounts.key'}",
            f"--service-cluster-ip-range={SERVICES}",
            "--allow-privileged=true",
            "--kubelet-preferred-address-types=InternalIP",
            "--profiling=false",
            # This feature needs statistics that Debian's etcd 3.4 does not report, and would fill the log with errors.
            "--feature-gates=SizeBasedListCostEstimate=false",
        ]
        if not self._with_controllers:
            # Without controllers no "default" service accounts exist, which this plugin requires.
            flags.append("--disable-admission-plugins=ServiceAccount")
        return [str(programs / "kube-apiserver"), *flags, *self._apiserver_flags]

    def _controllers_command(self, programs: Path) -> list[str]:
        return [
            str(programs / "kube-controller-manager"),
            f"--kubeconfig={self.kubeconfig}",
            f"--service-account-private-key-file={self.dir / 'accounts.key'}",
            f"--root-ca-file={self.dir / 'ca.crt'}",
            "--leader-elect=false",
            "--secure-port=0",
            "--profiling=false",
            "--use-service-account-credentials=false",
            "--kube-api-qps=1000",
            "--kube-api-burst=2000",
            *self._controller_flags,
        ]

    def get(self, path: str) -> tuple[int, bytes]:
        """Sends a GET as an administrator. Returns status and body; the status is 0 if the API server does not
        answer."""
        context = ssl.create_default_context(cafile=str(self.dir / "ca.crt"))
        connection = http.client.HTTPSConnection(self._listen.address, self._port, timeout=5, context=context)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self.admin_token}"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            return 0, b""
        finally:
            connection.close()

    def _ready(self) -> bool:
        # The API server creates the namespace "default" shortly after /readyz returns ok, and callers need it at once.
        return self.get("/readyz")[0] == 200 and self.get("/api/v1/namespaces/default")[0] == 200

    def _ask_etcd(self, path: str, question: dict[str, Any]) -> dict[str, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self._etcd_port, timeout=10)
        try:
            connection.request("POST", path, body=json.dumps(question))
            answer = connection.getresponse()
            body = json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise LabError(f"etcd did not answer {path}: {error}") from error
        finally:
            connection.close()
        if answer.status != 200:
            raise LabError(f"etcd answered {path} with {answer.status}: {body}")
        return body
