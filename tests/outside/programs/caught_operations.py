"""Catches the error about ranks that ask for other operations, and goes on. Each later push_pull raises it again."""

import signal

import gleaner.torch as gln
import torch

signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a job that has failed terminates ranks that are still at work
gln.init()
values = torch.ones(1_000)
for _ in range(3):
    gln.push_pull(values, average=True, name="w")
for average, name in ((gln.rank() != 1, "w"), (True, "w"), (True, "w"), (True, "new")):
    try:
        found = gln.push_pull(values * (gln.rank() + 1), average=average, name=name)
    except gln.GleanerError as error:
        assert "every rank must ask for the same operation" in str(error), error
    else:
        raise AssertionError(f"rank {gln.rank()}: no error for '{name}', but {found[0]}")
print("ok")
