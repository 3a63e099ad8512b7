"""Leaves the job in error on rank 0 while another thread of it waits for a bundle that rank 1 never sends."""

from __future__ import annotations

import threading
import time

import gleaner
import numpy
from checking import raises
from gleaner import process
from gleaner.bundles import Bundles


def main() -> None:
    gleaner.init()
    session = process.current()
    bundles = session.attached(Bundles)
    array = [("a", numpy.ones(3, numpy.float32))]
    bundles.push_pull(array)
    if gleaner.rank() == 1:
        threading.Event().wait()  # `gleaner run` ends this rank
    messages: list[str] = []
    thread = threading.Thread(
        target=lambda: messages.append(raises(gleaner.GleanerError, lambda: bundles.push_pull(array)))
    )
    thread.start()
    while not session.in_flight("bundle.digests"):
        time.sleep(0.01)
    gleaner.shutdown(failed=True)
    assert (
        len(messages) == 1 and "this rank left the job" in messages[0]
    ), "the thread's call ends before shutdown() does"
    print("left", flush=True)


main()
