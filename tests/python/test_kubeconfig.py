"""Tests how `gleaner` signs in by a kubeconfig: by commands that print credentials, through a proxy, with another name
in the server's certificate.

A server of this test stands for the API server where the real one of these tests does not show what it gets: names in
the handshake, client certificates, tokens that it refuses once. The last test has the real one.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Optional

import pytest
import yaml
from conftest import GLEANER, TIMEOUT
from real_api import real_api

V1 = "client.authentication.k8s.io/v1"
NAME = "api.lab"  # the only name in the server's certificate


@dataclass
class Seen:
    """Holds what the server got."""

    tokens: list[str] = field(default_factory=list)
    users: list[str] = field(default_factory=list)  # common names of client certificates
    names: list[Optional[str]] = field(default_factory=list)  # in the handshakes
    tunnels: list[str] = field(default_factory=list)  # requests of the proxy's users


def openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with a CA (ca.crt), and certificates of the server (server.crt) and of two users."""
    folder = tmp_path_factory.mktemp("pki")
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    openssl("req", "-x509", *key, "-subj", "/CN=ca", "-keyout", f"{folder}/ca.key", "-out", f"{folder}/ca.crt")
    signer = ["-CA", f"{folder}/ca.crt", "-CAkey", f"{folder}/ca.key"]
    for name in ("server", "ann", "tom"):
        files = ["-keyout", f"{folder}/{name}.key", "-out", f"{folder}/{name}.crt"]
        subject = ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{NAME}"]
        openssl("req", "-x509", *key, *subject, *signer, *files)
    return folder


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen: Seen
    refused: frozenset[str]

    def do_GET(self) -> None:
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        self.seen.tokens.append(token)
        subject = (self.connection.getpeercert() or {}).get("subject", ())
        self.seen.users += [value for part in subject for key, value in part if key == "commonName"]
        answer: dict[str, Any] = {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}
        if token in self.refused:
            answer = {"kind": "Status", "apiVersion": "v1", "code": 401, "reason": "Unauthorized", "message": "no"}
        body = json.dumps(answer).encode()
        self.send_response(answer.get("code", 200))
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextlib.contextmanager
def serving(pki: Path, *refused: str) -> Iterator[tuple[int, Seen]]:
    """Serves empty lists over TLS, and refuses some tokens. Yields the port and what the server gets."""
    seen = Seen()
    handler = type("Handler", (Handler,), {"seen": seen, "refused": frozenset(refused)})
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(pki / "ca.crt"))
    tls.load_cert_chain(pki / "server.crt", pki / "server.key")
    tls.verify_mode = ssl.CERT_OPTIONAL
    tls.sni_callback = lambda _, name, __: seen.names.append(name)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        server.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients that reject the certificate
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port, seen
        finally:
            server.shutdown()
            thread.join()


def carry(one: socket.socket, other: socket.socket) -> None:
    while True:
        for ready in select.select([one, other], [], [])[0]:
            data = ready.recv(65536)
            if not data:
                return
            (other if ready is one else one).sendall(data)


@contextlib.contextmanager
def tunnelling(port: int, seen: Seen, status: str = "200 OK") -> Iterator[int]:
    """Runs an HTTP proxy whose every tunnel ends at `port` of this machine. Yields the proxy's own port."""

    def tunnel(peer: socket.socket) -> None:
        with peer:
            request = b""
            while b"\r\n\r\n" not in request:
                request += peer.recv(4096)
            seen.tunnels.append(request.decode())
            peer.sendall(f"HTTP/1.1 {status}\r\n\r\n".encode())
            if status.startswith("200"):
                with socket.create_connection(("127.0.0.1", port)) as server:
                    carry(peer, server)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=tunnel, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def printing(folder: Path, *statuses: dict[str, str]) -> dict[str, Any]:
    """Returns a user whose command prints the Nth of `statuses` in its Nth run, and the last one from then on."""
    for index, status in enumerate(statuses):
        credential = {"kind": "ExecCredential", "apiVersion": V1, "status": status}
        (folder / str(index)).write_text(json.dumps(credential))
    script = folder / "login"
    script.write_text('#!/bin/sh\ncd "${0%/*}"; echo run >>runs; n=$(wc -l <runs)\ncat $((n > $1 ? $1 - 1 : n - 1))\n')
    script.chmod(0o755)
    command = {"command": "./login", "args": [str(len(statuses))], "interactiveMode": "Never"}
    return {"exec": {"apiVersion": V1, **command}}


def kubeconfig(folder: Path, cluster: dict[str, Any], user: dict[str, Any]) -> str:
    """Writes a kubeconfig as JSON, a kind of YAML, and returns its path."""
    context = {"name": "lab", "context": {"cluster": "lab", "user": "lab"}}
    config = {
        "current-context": "lab",
        "contexts": [context],
        "clusters": [{"name": "lab", "cluster": cluster}],
        "users": [{"name": "lab", "user": user}],
    }
    path = folder / "config"
    path.write_text(json.dumps(config))
    return str(path)


def gleaner(folder: Path, cluster: dict[str, Any], user: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    command = [str(GLEANER), "status", "-A", "--kubeconfig", kubeconfig(folder, cluster, user)]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, env={**os.environ, "HOME": "/"})


def cluster(pki: Path, port: int, **more: str) -> dict[str, Any]:
    server = {"server": f"https://127.0.0.1:{port}", "certificate-authority": str(pki / "ca.crt")}
    return {**server, "tls-server-name": NAME, **more}


def certificate(pki: Path, name: str) -> dict[str, str]:
    files = {"clientCertificateData": pki / f"{name}.crt", "clientKeyData": pki / f"{name}.key"}
    return {field: path.read_text() for field, path in files.items()}


def test_commands_print_tokens(pki: Path, tmp_path: Path) -> None:
    with serving(pki) as (port, seen):
        done = gleaner(tmp_path, cluster(pki, port), printing(tmp_path, {"token": "good"}))
    assert done.returncode == 0, done.stderr
    assert seen.tokens == ["good"]


def test_commands_print_client_certificates(pki: Path, tmp_path: Path) -> None:
    with serving(pki) as (port, seen):
        done = gleaner(tmp_path, cluster(pki, port), printing(tmp_path, certificate(pki, "ann")))
    assert done.returncode == 0, done.stderr
    assert (seen.tokens, seen.users) == ([""], ["ann"])


def test_refused_credentials_are_replaced(pki: Path, tmp_path: Path) -> None:
    statuses = ({"token": "old", **certificate(pki, "ann")}, {"token": "new", **certificate(pki, "tom")})
    with serving(pki, "old") as (port, seen):
        done = gleaner(tmp_path, cluster(pki, port), printing(tmp_path, *statuses))
    assert done.returncode == 0, done.stderr
    assert (seen.tokens, seen.users) == (["old", "new"], ["ann", "tom"])


def test_credentials_that_stay_refused_are_an_error(pki: Path, tmp_path: Path) -> None:
    with serving(pki, "old") as (port, seen):
        done = gleaner(tmp_path, cluster(pki, port), printing(tmp_path, {"token": "old"}))
    assert done.returncode == 1
    assert "does not accept the kubeconfig's credentials" in done.stderr
    assert seen.tokens == ["old", "old"]


def test_a_missing_command_shows_its_hint(pki: Path, tmp_path: Path) -> None:
    user = {"exec": {"apiVersion": V1, "command": "gleaner-lacks-this", "interactiveMode": "Never"}}
    user["exec"]["installHint"] = "install it from lab.example"
    done = gleaner(tmp_path, cluster(pki, 1), user)
    assert done.returncode == 1
    assert "gleaner-lacks-this" in done.stderr
    assert "install it from lab.example" in done.stderr


def test_tls_server_name_is_sent_and_verified(pki: Path, tmp_path: Path) -> None:
    with serving(pki) as (port, seen):
        assert gleaner(tmp_path, cluster(pki, port), {}).returncode == 0
        assert seen.names == [NAME]
        wrong = gleaner(tmp_path, cluster(pki, port, **{"tls-server-name": "other.lab"}), {})
        assert "handshake" in wrong.stderr
        assert len(seen.tokens) == 1, "a request went to a server of another name"


def test_requests_go_through_the_proxy(pki: Path, tmp_path: Path) -> None:
    with serving(pki) as (port, seen), tunnelling(port, seen) as proxy:
        far = {"server": "https://far.lab", "proxy-url": f"http://ann:pass%20word@127.0.0.1:{proxy}"}
        done = gleaner(tmp_path, cluster(pki, port, **far), {"token": "good"})
    assert done.returncode == 0, done.stderr
    [request] = seen.tunnels
    assert request.startswith("CONNECT far.lab:443 HTTP/1.1\r\n")
    assert "Proxy-Authorization: Basic YW5uOnBhc3Mgd29yZA==\r\n" in request
    assert "good" not in request
    assert seen.tokens == ["good"]


def test_a_proxy_that_refuses_is_named_without_its_password(pki: Path, tmp_path: Path) -> None:
    with serving(pki) as (port, seen), tunnelling(port, seen, "407 Proxy Authentication Required") as proxy:
        url = f"http://ann:secret@127.0.0.1:{proxy}"
        done = gleaner(tmp_path, cluster(pki, port, **{"proxy-url": url}), {})
    assert done.returncode == 1
    assert f"through the proxy http://127.0.0.1:{proxy}" in done.stderr
    assert "407" in done.stderr
    assert "secret" not in done.stderr


@pytest.mark.parametrize("scheme", ["https", "socks5", "ftp"])
def test_other_proxies_are_refused_in_words(pki: Path, tmp_path: Path, scheme: str) -> None:
    done = gleaner(tmp_path, cluster(pki, 1, **{"proxy-url": f"{scheme}://ann:secret@proxy.lab:1080"}), {})
    assert done.returncode == 1
    assert f"scheme '{scheme}'" in done.stderr
    assert "only HTTP proxies" in done.stderr
    assert "secret" not in done.stderr


@pytest.mark.usefixtures("kubernetes")
def test_a_kubeconfig_for_kubectl_is_one_for_gleaner(tmp_path: Path) -> None:
    """A real API server behind a proxy accepts kubectl and gleaner, or refuses both."""
    with real_api() as api, tunnelling(int(api.server.rpartition(":")[2]), seen := Seen()) as proxy:
        api.install()
        known = yaml.safe_load(api.kubeconfig.read_text())
        authority = known["clusters"][0]["cluster"]["certificate-authority"]
        token = known["users"][0]["user"]["token"]
        url = f"http://127.0.0.1:{proxy}"
        for name, printed, is_accepted in (
            ("kubernetes.default", token, True),
            ("kubernetes.default", "expired", False),
            ("other.lab", token, False),
        ):
            there = {"server": "https://10.255.0.1", "certificate-authority": authority, "proxy-url": url}
            there["tls-server-name"] = name
            user = printing(tmp_path, {"token": printed})
            path = kubeconfig(tmp_path, there, user)
            kubectl = api.kubectl("get", "trainingjobs", "-A", "--kubeconfig", path)
            assert (kubectl.returncode == 0) == is_accepted, kubectl.stderr
            done = gleaner(tmp_path, there, user)
            assert (done.returncode == 0) == is_accepted, done.stderr
        assert len(seen.tunnels) > 4
