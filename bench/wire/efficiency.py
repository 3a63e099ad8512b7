"""Rows of efficiency: the bound over the step time."""

from __future__ import annotations

import statistics

from wire import jobs, model
from wire.lab import Lab, Setting, bits_per_second
from wire.row import JOB_SECONDS, MIB, Measured, Row, enough

STEP = 64 * MIB  # per worker
EIGHT = Setting(8, 8)
# A quarter of EIGHT's rate and bytes, so that its 34 hosts together move about as many bytes as the 16 hosts of EIGHT,
# in steps of the same duration.
SIXTEEN = Setting(16, 18, "50mbit")
SIXTEENTH_STEP = 16 * MIB
GIGABIT = Setting(2, 2, "1gbit", "625kb")
PAYLOAD = 0.95  # approximate share of a rate that is TCP payload, for estimates


def nominal_bound(setting: Setting, workers: int, summers: int, bytes_: int) -> float:
    rates = [[PAYLOAD * bits_per_second(setting.rate_of(f"{kind}{i}")) for i in range(count)]
             for kind, count in (("worker", workers), ("summer", summers))]  # fmt: skip
    return model.bound(bytes_, *rates)


def efficiency(
    name: str, aim: float, setting: Setting, workers: int, summers: int, tensors: list[str], more: int = 1
) -> Row:
    """Returns a row of efficiency. Short steps are measured `more` times as often."""
    expected = nominal_bound(setting, workers, summers, jobs.bytes_of(tensors))

    def measure(lab: Lab, steps: int) -> Measured:
        part = lab.part(workers, summers)
        found = jobs.measure(part, tensors, *enough(expected, more * steps))
        bound = jobs.bound(part, tensors, found)
        figures = {"bound": bound, "step": found.median, "steps": found.seconds}
        figures |= {"pause": statistics.median(found.pauses)}
        figures |= {"workers": workers, "summers": summers, "payload_bits_per_second": lab.payload_of("worker0")}
        return Measured(bound / found.median, found.spread, figures)

    def seconds(steps: int) -> float:
        return JOB_SECONDS + sum(enough(expected, more * steps)) * 1.05 * expected

    return Row(name, aim, setting, measure, seconds)


def one(bytes_: int) -> list[str]:
    return ["--bytes", str(bytes_)]


def even_rows() -> list[Row]:
    rows = [efficiency(f"n=8 k={k}: 64 MiB", 0.985, EIGHT, 8, k, one(STEP)) for k in range(9)]
    for name in ("resnet50", "vgg16"):
        rows += [efficiency(f"n=8 k={k}: {name}", 0.975, EIGHT, 8, k, jobs.of_model(name)) for k in range(9)]
    return rows + [efficiency(f"n=4 k={k}: 64 MiB", 0.975, EIGHT, 4, k, one(STEP)) for k in range(7)]


def other_rows() -> list[Row]:
    """Returns rows that each need different links."""
    uneven = {
        "half of the summers at half speed": {f"summer{j}": "100mbit" for j in range(4)},
        "one worker at half speed": {"worker0": "100mbit"},
        "one summer at a tenth": {"summer0": "20mbit"},
    }
    rows = [
        efficiency(f"n=8 k=8: {name}", 0.975, Setting(8, 8, rates=tuple(rates.items())), 8, 8, one(STEP))
        for name, rates in uneven.items()
    ]
    # These rows use half the rate: with a burst smaller than an offloaded (GSO) packet, tbf segments each packet, and
    # at 200 Mbit/s two cores cannot do that for 12 hosts.
    rows += [
        efficiency(
            f"n=4 k=4 at 100 Mbit/s: bursts of {burst}", 0.975, Setting(4, 4, "100mbit", burst), 4, 4, one(STEP // 2)
        )
        for burst in ("32kb", "512kb")
    ]
    return rows + [efficiency(f"n=16 k={k}: 16 MiB", 0.975, SIXTEEN, 16, k, one(SIXTEENTH_STEP)) for k in range(19)]
