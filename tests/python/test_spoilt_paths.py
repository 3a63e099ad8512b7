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
from conftest import TIMEOUT, free_address, job, own_address, read_until

HANDSHAKE = 1024  # upper limit of the handshake's bytes
LIMIT = 64 << 10
CLONE_NEWNET = 0x40000000


class Proxy:
    """A proxy in front of a summer, on the same port of 127.0.0.1. It spoils the data that workers send."""

    def __init__(self, spoil: str) -> None:
        self._spoil = spoil
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._target = (own_address(), self.port)
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
def address(spoil: str) -> Iterator[str]:
    """The HOST:PORT of a summer behind a proxy that passes no large frame."""
    if spoil == "black hole":  # like a router that silently drops packets above the next hop's MTU
        with network_of_its_own():
            address = free_address()
            port = address.split(":")[1]
            rule = ["-p", "tcp", "--dport", port, "-m", "length", "--length", f"{HANDSHAKE}:65535", "-j", "DROP"]
            subprocess.run(["iptables", "-A", "INPUT", *rule], check=True)
            yield address
        return
    proxy = Proxy(spoil)
    yield f"{own_address()}:{proxy.port}"
    proxy.close()


@pytest.mark.parametrize(
    ("spoil", "lost"),
    [
        ("reset", "broke without progress"),
        ("flip", "broke without progress"),
        # This case needs root.
        pytest.param("black hole", "(out of reach for|broke without progress).*last: .*silent", marks=pytest.mark.long),
    ],
)
def test_a_summer_behind_a_broken_path_is_reported_lost(tmp_path: Path, address: str, spoil: str, lost: str) -> None:
    stop = tmp_path / "stop"
    advertised = address.split(":")[0] if spoil == "black hole" else "127.0.0.1"
    with job(tmp_path, 2, 1, summer_flags=("--listen", address, "--advertise", advertised)) as started:
        workers = [started.start_worker(i, "changing.py", str(stop), GLEANER_TRANSPORTS="tcp") for i in range(2)]
        for worker in workers:
            # The workers sum without the summer: the plan drops it each time that it joins.
            read_until(worker, "summing")
        said = started.log_of(started.coordinator)
        said.wait_for(rf"is lost: worker \d+ .*reports: .*{lost}")
        if spoil != "black hole":  # in a black hole each connection takes a while to break
            started.log_of(started.summers[0]).wait_for("a worker's connections break again and again")
        stop.touch()
        errors = [worker.communicate(timeout=TIMEOUT)[1] for worker in workers]
        assert [worker.returncode for worker in workers] == [0, 0], errors
        # Only the worker that first loses the path logs this.
        assert re.search(rf"warning .*summer/0 at {advertised}:\d+: .*{lost}", "".join(errors)), errors
        started.summers[0].send_signal(signal.SIGTERM)
        assert started.coordinator.wait(timeout=TIMEOUT) == 0, said.whole()
