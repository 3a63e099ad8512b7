"""A path on which connections come up and break again is a path that is lost: it is said, and the job goes on."""

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

HANDSHAKE = 1024  # bytes, at most
LIMIT = 64 << 10
CLONE_NEWNET = 0x40000000


class Proxy:
    """Stands before a summer, at another of this machine's loopback addresses, and spoils what workers send."""

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
        sent: dict[socket.socket, int] = {}  # by workers, per connection
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
                        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
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
    """This thread, and processes that it starts, have a loopback of their own meanwhile."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/thread-self/ns/net") as before:
        if libc.unshare(CLONE_NEWNET) != 0:
            pytest.skip(f"no network namespace of its own: {os.strerror(ctypes.get_errno())}")
        try:
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            yield
        finally:
            assert libc.setns(before.fileno(), CLONE_NEWNET) == 0


@pytest.fixture
def port(spoil: str) -> Iterator[int]:
    """Where a summer listens to which no large frame gets through."""
    if spoil == "black hole":  # as where a router drops what is larger than its next hop takes, and doesn't say so
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
def test_a_summer_that_nothing_gets_through_to(
    tmp_path: Path, port: int, spoil: str, advertised: str, lost: str
) -> None:
    with job(tmp_path, 2, 1, summer_flags=("--listen", f"127.0.0.1:{port}", "--advertise", advertised)) as started:
        workers = [started.start_worker(index, "loop.py", "200", GLEANER_TRANSPORTS="tcp") for index in range(2)]
        for worker in workers:
            read_until(worker, "summing")  # for themselves: the summer is left out each time it comes
        errors = [worker.communicate(timeout=120)[1] for worker in workers]
        assert [worker.returncode for worker in workers] == [0, 0], errors
        # Of the one that loses it first.
        assert re.search(rf"warning .*summer/0 at {advertised}:\d+: .*{lost}", "".join(errors)), errors
        started.summers[0].send_signal(signal.SIGTERM)
        _, said = started.summers[0].communicate(timeout=20)
        if spoil != "black hole":  # each takes a while to break there
            assert "a worker's connections break again and again" in said, said
        _, said = started.coordinator.communicate(timeout=20)
        assert re.search(rf"is lost: worker \d+ .*reports: .*{lost}", said), said
