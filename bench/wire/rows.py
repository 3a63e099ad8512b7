"""All rows of run_all, ordered so that rows of the same setting share a lab."""

from __future__ import annotations

from wire import beside, cost, efficiency, fusion, latency, orders, strategies, sweep
from wire.row import Row


def rows() -> list[Row]:
    eight = efficiency.even_rows() + sweep.size_rows() + beside.shaped_rows() + cost.rows()
    fast = sweep.rate_rows() + cost.fast_rows()
    loopback = beside.loopback_rows() + sweep.loopback_rows()
    others = latency.rows() + efficiency.other_rows() + strategies.rows() + orders.rows() + fusion.rows()
    return eight + others + fast + loopback
