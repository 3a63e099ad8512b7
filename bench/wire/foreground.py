"""Simulates other load on a machine: requests of about a millisecond of CPU time, in one process per core.

    foreground.py CORES EVERY FILE

CORES is a list like "0,1". On each core a request arrives every EVERY seconds (0: as soon as the last request is done).
The program writes "ready", works until FILE exists, and then writes a JSON list with a pair for each request: its end
on this machine's monotonic clock, and the seconds from its arrival to its end."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import sys
import time
from multiprocessing import Barrier, Process, Queue
from pathlib import Path

REQUEST_SECONDS = 1e-3
LOOK_EVERY = 0.2


def block_of_a_request() -> bytes:
    """Returns bytes whose hash takes about REQUEST_SECONDS on an idle core of this machine."""
    probe = bytes(1 << 18)
    best = 1.0
    for _ in range(50):
        start = time.perf_counter()
        hashlib.sha256(probe)
        best = min(best, time.perf_counter() - start)
    return bytes(int(len(probe) * REQUEST_SECONDS / best))


def serve(core: int, block: bytes, every: float, stop: Path, together: Barrier, out: Queue) -> None:
    os.sched_setaffinity(0, {core})
    gc.disable()
    done: list[tuple[float, float]] = []
    together.wait()
    due = look = time.monotonic()
    while True:
        now = time.monotonic()
        if now >= look:
            look = now + LOOK_EVERY
            if stop.exists():
                break
        if every == 0:
            due = now
        elif now < due:
            time.sleep(due - now)
        hashlib.sha256(block)
        end = time.monotonic()
        done.append((end, end - due))
        due += every
    out.put(done)


def main() -> None:
    cores = [int(core) for core in sys.argv[1].split(",")]
    block, results, together = block_of_a_request(), Queue(), Barrier(len(cores) + 1)
    servers = [
        Process(target=serve, args=(core, block, float(sys.argv[2]), Path(sys.argv[3]), together, results))
        for core in cores
    ]
    for server in servers:
        server.start()
    together.wait()
    print("ready", flush=True)
    done = [request for _ in servers for request in results.get()]
    for server in servers:
        server.join()
    json.dump(sorted(done), sys.stdout)


if __name__ == "__main__":
    main()
