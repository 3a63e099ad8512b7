"""Checks jobs with several local ranks per worker. A worker sends its local sum in float32, without rounding it."""

from __future__ import annotations

import gleaner
from checking import data_of, rank_order_sum, run_checks, same_bits


def check_local_ranks_are_numbered() -> None:
    assert gleaner.local_size() == 2
    assert gleaner.rank() % gleaner.local_size() == gleaner.local_rank()


def check_local_sums_are_not_rounded_before_they_travel() -> None:
    g, n = gleaner.local_size(), gleaner.size() // gleaner.local_size()
    for kind in ("float32", "float64", "float16", "int32"):
        for elements in (1, 70_000):
            parts = [data_of(rank, elements).astype(kind) for rank in range(gleaner.size())]
            wide = [part.astype("float32") if kind == "float16" else part for part in parts]
            partial = [rank_order_sum(wide[worker * g : (worker + 1) * g]) for worker in range(n)]
            name = f"{kind}.{elements}"
            total = gleaner.push_pull(parts[gleaner.rank()], name=f"sum.{name}", average=False)
            assert same_bits(total, rank_order_sum(partial).astype(kind)), name
            if kind != "int32":
                mean = gleaner.push_pull(parts[gleaner.rank()], name=f"mean.{name}")
                assert same_bits(mean, rank_order_sum(partial, gleaner.size()).astype(kind)), name


def check_broadcast_reaches_local_ranks() -> None:
    for root in range(gleaner.size()):
        assert gleaner.broadcast_object(("from", gleaner.rank()), root) == ("from", root)


if __name__ == "__main__":
    gleaner.init()
    run_checks(globals())
    gleaner.shutdown()
