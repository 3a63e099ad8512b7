"""Joins a job and ends by KeyboardInterrupt if it is interrupted. Prints "waiting" while it waits for other workers."""

from __future__ import annotations

import signal
import threading

import gleaner
from interrupted import announce

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # this process may have started with SIGINT ignored
    threading.Thread(target=announce, daemon=True).start()
    gleaner.init()
