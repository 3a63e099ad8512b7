"""Forks children: forking.py WHAT. Each child prints its outcome, and the parents continue to sum.

WHAT is one of:
    init             the child calls init(), against the documentation
    push_pull        the child uses the session that it inherited
    exit             the child ends by sys.exit()
    multiprocessing  a pool of forked processes
    loader           a DataLoader with forked workers
    before           children that are ranks themselves, forked before init() in any process
"""

from __future__ import annotations

import multiprocessing
import os
import sys

import gleaner
import numpy


def total() -> float:
    return float(gleaner.push_pull(numpy.ones(1000, numpy.float32), name="x", average=False)[0])


def in_child(work) -> None:
    """Runs `work` in a forked child, and waits for the child's end."""
    child = os.fork()
    if child == 0:
        try:
            work()
            print("child did it", flush=True)
        except gleaner.FailedPreconditionError as error:
            print(f"child was told: {error}", flush=True)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0, status


def leave_at_exit() -> None:
    """Forks a child that ends by sys.exit(), which runs the interpreter's atexit functions."""
    child = os.fork()
    if child == 0:
        sys.exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0, status
    print("child ended", flush=True)


def square(number: int) -> int:
    return number * number


def pool() -> None:
    with multiprocessing.get_context("fork").Pool(2) as workers:
        assert workers.map(square, range(10)) == [number * number for number in range(10)]
    print("pool worked", flush=True)


def loader() -> None:
    import torch

    data = torch.utils.data.TensorDataset(torch.arange(64, dtype=torch.float32))
    batches = torch.utils.data.DataLoader(data, batch_size=8, num_workers=2, multiprocessing_context="fork")
    assert sum(float(batch.sum()) for (batch,) in batches) == 2016
    print("loader worked", flush=True)


def main() -> None:
    what = sys.argv[1]
    if what == "before":
        in_child(lambda: (gleaner.init(), total(), gleaner.shutdown()))
        return
    gleaner.init()
    assert total() == gleaner.size()
    {
        "init": lambda: in_child(gleaner.init),
        "push_pull": lambda: in_child(total),
        "exit": leave_at_exit,
        "multiprocessing": pool,
        "loader": loader,
    }[what]()
    assert total() == gleaner.size()
    gleaner.shutdown()
    if what == "init":
        in_child(gleaner.init)
    print("summed", flush=True)


main()
