"""Catches the error about ranks that ask for other operations, and goes on. Each later push_pull raises it again.

A rank whose worker agrees may get the error before the sum of an earlier push_pull, which the others have already.
"""

import signal

import gleaner.torch as gln
import torch
from gleaner.errors import InvalidArgumentError

AGREED = 3  # push_pulls before the one for which ranks ask for other operations

signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a job that has failed terminates ranks that are still at work
gln.init()
differs = gln.local_size() == 1 or gln.rank() < gln.local_size()
values = torch.ones(1_000)
asked = [(True, "w")] * AGREED + [(gln.rank() != 1, "w"), (True, "w"), (True, "w"), (True, "new")]
failed_at = None
for number, (average, name) in enumerate(asked):
    try:
        found = gln.push_pull(values * (gln.rank() + 1), average=average, name=name)
    except InvalidArgumentError as error:
        assert "every rank must ask for the same operation" in str(error), error
        failed_at = number if failed_at is None else failed_at
    else:
        assert failed_at is None and number < AGREED, f"rank {gln.rank()}: no error for '{name}', but {found[0]}"
assert failed_at == AGREED or not differs, f"rank {gln.rank()}: the error came to push_pull {failed_at}"
print("ok")
