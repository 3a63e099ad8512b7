"""The table of run_all, in an order in which rows that share a lab follow each other."""

from __future__ import annotations

from wire import beside, cost, efficiency, latency
from wire.row import Row


def rows() -> list[Row]:
    eight = efficiency.even_rows() + beside.shaped_rows() + latency.rows() + cost.rows()
    return eight + efficiency.other_rows() + beside.loopback_rows()
