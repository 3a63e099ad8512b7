"""Catches the error about local ranks that ask for other operations, and waits. The ranks that agree get it, too."""

import sys
import time

import gleaner.torch as gln
import torch

gln.init()
values = torch.ones(1_000)
for _ in range(3):
    gln.push_pull(values, average=True, name="w")
at_fault = gln.rank() // gln.local_size() == int(sys.argv[1])
try:
    gln.push_pull(values, average=not at_fault or gln.local_rank() != 1, name="w")
except gln.GleanerError as error:
    if at_fault:
        time.sleep(600)
    raise SystemExit(str(error)) from error
