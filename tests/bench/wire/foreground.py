"""A load as a machine's owners have it: requests of about a millisecond of computing, in one process per core.

    foreground.py CORES EVERY FILE

CORES like "0,1"; a request comes every EVERY seconds on each core (0: when the last one is done). Writes "ready", works
until FILE is there, and then writes a JSON list: for every request when it was done, on this machine's monotonic clock,
and for how long whoever sent it waited.
"""

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
    """Bytes whose hash takes about a request's time here, undisturbed."""
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
