"""Tests paths on which connections open but break again: the job loses the path and continues without it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import select
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import free_port, job, read_until

HANDSHAKE = 1024  # upper limit of the handshake's bytes
LIMIT = 64 << 10
CLONE_NEWNET = 0x40000000


class Proxy:
    """A proxy in front of a summer, on another loopback address. It spoils the data that workers send."""

    def __init__(self, port: int, spoil: str) -> None:
        self._spoil = spoil
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.2", port))
        self._stopping = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def close(self) -> None:
        self._stopping = True
        self._thread.join()
        self._listener.close()

    def _run(self) -> None:
        others: dict[socket.socket, socket.socket] = {}
        sent: dict[socket.socket, int] = {}  # bytes that workers have sent, per connection
        while not self._stopping:
            for ready in select.select([self._listener, *others], [], [], 0.05)[0]:
                if ready is self._listener:
                    worker = ready.accept()[0]
                    try:
                        summer = socket.create_connection(self._target)
                    except OSError:
                        worker.close()
                        continue
                    others[worker], others[summer], sent[worker] = summer, worker, 0
                elif ready in others and not self._forward(ready, others[ready], sent):
                    other = others.pop(ready)
                    del others[other]
                    for end in (ready, other):
                        sent.pop(end, None)
                        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close() resets
                        end.close()
        for end in others:
            end.close()

    def _forward(self, source: socket.socket, target: socket.socket, sent: dict[socket.socket, int]) -> bool:
        try:
            data = bytearray(source.recv(16 << 10))
            if source in sent:
                sent[source] += len(data)
                if self._spoil == "reset" and sent[source] > LIMIT:
                    return False
                if self._spoil == "flip" and len(data) > HANDSHAKE:
                    data[len(data) // 2] ^= 1
            target.sendall(data)
        except OSError:
            return False
        return len(data) > 0


@contextlib.contextmanager
def network_of_its_own() -> Iterator[None]:
    """Gives this thread, and the processes that it starts, a new network namespace with a separate loopback."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/thread-self/ns/net") as before:
        if libc.unshare(CLONE_NEWNET) != 0:
            pytest.skip(f"cannot make a network namespace: {os.strerror(ctypes.get_errno())}")
        try:
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            yield
        finally:
            assert libc.setns(before.fileno(), CLONE_NEWNET) == 0


@pytest.fixture
def port(spoil: str) -> Iterator[int]:
    """The port of a summer behind a proxy that passes no large frame."""
    if spoil == "black hole":  # like a router that silently drops packets above the next hop's MTU
        with network_of_its_own():
            port = free_port()
            rule = ["-p", "tcp", "--dport", str(port), "-m", "length", "--length", f"{HANDSHAKE}:65535", "-j", "DROP"]
            subprocess.run(["iptables", "-A", "INPUT", *rule], check=True)
            yield port
        return
    port = free_port()
    proxy = Proxy(port, spoil)
    yield port
    proxy.close()


@pytest.mark.parametrize(
    ("spoil", "advertised", "lost"),
    [
        ("reset", "127.0.0.2", "broke without progress"),
        ("flip", "127.0.0.2", "broke without progress"),
        ("black hole", "127.0.0.1", "(out of reach for|broke without progress).*last: .*silent"),
    ],
)
def test_a_summer_behind_a_broken_path_is_reported_lost(
    tmp_path: Path, port: int, spoil: str, advertised: str, lost: str
) -> None:
    with job(tmp_path, 2, 1, summer_flags=("--listen", f"127.0.0.1:{port}", "--advertise", advertised)) as started:
        workers = [started.start_worker(index, "loop.py", "200", GLEANER_TRANSPORTS="tcp") for index in range(2)]
        for worker in workers:
            # The workers sum without the summer: the plan drops it each time that it joins.
            read_until(worker, "summing")
        errors = [worker.communicate(timeout=120)[1] for worker in workers]
        assert [worker.returncode for worker in workers] == [0, 0], errors
        # Only the worker that first loses the path logs this.
        assert re.search(rf"warning .*summer/0 at {advertised}:\d+: .*{lost}", "".join(errors)), errors
        started.summers[0].send_signal(signal.SIGTERM)
        _, said = started.summers[0].communicate(timeout=20)
        if spoil != "black hole":  # in a black hole each connection takes a while to break
            assert "a worker's connections break again and again" in said, said
        _, said = started.coordinator.communicate(timeout=20)
        assert re.search(rf"is lost: worker \d+ .*reports: .*{lost}", said), said
