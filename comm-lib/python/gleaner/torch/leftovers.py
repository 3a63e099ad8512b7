"""Frees what a failed backward pass leaves in the queue of the autograd engine, before the interpreter ends.

When a hook raises, as ours do once the session has failed, the engine keeps the nodes that the pass has not reached in
a queue of the calling thread, and with them parameters and gradients. The main thread destroys its queue after the end
of the interpreter. The destructors of these tensors then wait for the interpreter's lock forever, so the process would
never end.

The engine takes nodes from the queue by their sequence numbers, the highest first, and drops the nodes of passes that
have ended. So one more pass over a node with a lower number empties the queue.
"""

from __future__ import annotations

import atexit
import contextlib

import torch


def _first_node() -> torch.Tensor:
    """Returns the result of a node whose number is lower than those of later passes, since it is made at import."""
    with torch.inference_mode(False), torch.enable_grad():
        return torch.zeros(1, device="cpu", requires_grad=True).clone()


def _empty_queue(first: torch.Tensor) -> None:
    with contextlib.suppress(RuntimeError):  # a process that was forked from one that has used a GPU cannot make a pass
        first.backward()


atexit.register(_empty_queue, _first_node())
