"""Tests bench/training: traces, the limit of a step, and real workers that train a small trace on loopback."""

from __future__ import annotations

import json
import math
import random
import sys
from pathlib import Path

import pytest
from conftest import ROOT, run_job

sys.path.insert(0, str(ROOT / "bench"))
from training import limits, traces
from training.results import Contest, Result
from training.traces import Layer
from wire.steps import Steps

MODELS = sorted(traces.PUBLISHED)


@pytest.mark.parametrize("model", MODELS)
def test_traces_match_their_generator(model: str) -> None:
    listed = json.loads((traces.MODELS / f"{model}.json").read_text())
    assert traces.load(traces.TRACES / f"{model}.json") == traces.made_from(traces.PUBLISHED[model], listed)


@pytest.mark.parametrize("model", MODELS)
def test_a_trace_has_the_published_time_and_the_models_tensors(model: str) -> None:
    trace = traces.load(traces.TRACES / f"{model}.json")
    seconds = sum(layer.forward + layer.backward for layer in trace.layers)
    assert math.isclose(seconds, traces.PUBLISHED[model].seconds, rel_tol=1e-6)
    listed = json.loads((traces.MODELS / f"{model}.json").read_text())
    backward = [{"name": name, "bytes": size} for layer in reversed(trace.layers) for name, size in layer.tensors]
    assert backward == listed


GPT2_TOKEN = 12 * (12 * 768**2 + 2 * 1024 * 768) + 50257 * 768
BERT_TOKEN = 24 * (12 * 1024**2 + 2 * 512 * 1024)


@pytest.mark.parametrize(
    ("model", "giga"),
    [
        ("alexnet", 0.72),
        ("vgg16", 15.5),
        ("resnet50", 4.1),
        ("gpt2_small", GPT2_TOKEN * 1024 / 1e9),
        ("bert_large", BERT_TOKEN * 512 / 1e9),
    ],
)
def test_multiply_adds_match_published_numbers(model: str, giga: float) -> None:
    """Compares with published numbers per image, and with the sum over matrices, attention and head per sequence."""
    listed = json.loads((traces.MODELS / f"{model}.json").read_text())
    tensors = [(each["name"], each["bytes"] // 4) for each in listed]
    total = sum(operations for _, _, operations in traces.PUBLISHED[model].spread(tensors))
    assert total / 1e9 == pytest.approx(giga, rel=0.015)


def layers(*listed: tuple[float, float, int]) -> list[Layer]:
    return [Layer(f"l{i}", forward, backward, ((f"t{i}", size),)) for i, (forward, backward, size) in enumerate(listed)]


def test_the_limit_is_computation_when_there_is_little_to_send() -> None:
    found = limits.limit(layers((1, 2, 0), (1, 2, 4)), bound=0.5)
    assert found.compute == 6
    assert found.step == 6


def test_the_limit_includes_the_first_layers_own_sum() -> None:
    found = limits.limit(layers((1, 2, 4), (1, 2, 0)), bound=3)
    assert found.step == 6 + 3
    assert limits.in_order(layers((1, 2, 4), (1, 2, 0)), bound=3) == 9


def test_the_limit_includes_all_sums_before_the_last_layer() -> None:
    found = limits.limit(layers((1, 1, 1), (1, 1, 9)), bound=100)
    assert found.step == 100 + 2


def test_without_an_order_forward_waits_for_the_last_byte() -> None:
    trace = layers((1, 1, 1), (1, 1, 9))
    assert limits.in_order(trace, bound=10) == 1 + 9 + 1 + 2
    assert limits.afterwards(trace, bound=10) == 4 + 10


def turn_of_the_best_order(trace: list[Layer], bound: float) -> float:
    """Simulates a step in which the link always sends the bytes that forward needs first. Returns the step time."""
    left = limits.travel(trace, bound)
    made, now = {}, 0.0
    for number in reversed(range(len(trace))):
        now += trace[number].backward
        made[number] = now
    sent, clock = {}, 0.0
    while len(sent) < len(trace):
        ready = [number for number in made if number not in sent and made[number] <= clock]
        later = [made[number] for number in made if made[number] > clock]
        if not ready:
            clock = min(later)
            continue
        first = min(ready)
        until = min([clock + left[first], *later])
        left[first] -= until - clock
        clock = until
        if left[first] <= 1e-12:
            sent[first] = clock
    end = made[0]
    for number, layer in enumerate(trace):
        end = max(end, sent[number]) + layer.forward
    return end


def test_the_limit_is_the_step_time_of_the_best_order() -> None:
    generator = random.Random(7)
    for _ in range(300):
        count = generator.randrange(1, 7)
        trace = layers(*((generator.random(), generator.random(), generator.randrange(1, 9)) for _ in range(count)))
        bound = generator.random() * 8
        best = turn_of_the_best_order(trace, bound)
        assert limits.limit(trace, bound).step == pytest.approx(best, abs=1e-9)
        assert best <= limits.in_order(trace, bound) + 1e-9 <= limits.afterwards(trace, bound) + 2e-9


def test_ratios_compare_with_the_best_other_contender() -> None:
    limit = limits.Limit(1.0, 2.0, 3.0)
    contests = [
        Contest("CrossBarrier", 4, Steps([0.0], [3.2]), limit, 3.5),
        Contest("DDP, buckets of 25 MiB", 0, Steps([0.0], [6.0]), limit, 3.5),
        Contest("DDP, buckets of 5 MiB", 0, Steps([0.0], [4.8]), limit, 3.5),
    ]
    result = Result("vgg16", 4, "400mbit", "20gbit", 50, "made up", contests)
    found = {name: (ratio, aim) for name, ratio, aim in result.ratios()}
    assert found["k = 4: limit / CrossBarrier"] == (pytest.approx(3 / 3.2), 0.95)
    assert found["k = 4: DDP / CrossBarrier"] == (pytest.approx(1.5), 1.6)
    assert result.table().count("SHORT") == 2


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.json"
    made = [Layer(f"l{i}", 0.002, 0.004, ((f"l{i}.bias", 40), (f"l{i}.weight", 40000))) for i in range(3)]
    traces.save(traces.Trace("made up", "1gbit", (*made, Layer("head", 0.002, 0.004))), path)
    return path


def assert_steps(lines: list[dict[str, list[float]]]) -> None:
    assert len(lines) == 2
    found = Steps.of_ranks(lines).seconds
    assert len(found) == 3
    assert min(found) >= 4 * 0.006, "shorter than the layers take"


def test_ddp_with_backend_gleaner_is_compared_with_the_optimizer() -> None:
    limit = limits.Limit(1.0, 2.0, 3.0)
    contests = [
        Contest("DistributedOptimizer", 4, Steps([0.0], [4.0]), limit, 3.5),
        Contest("backend gleaner, DDP", 4, Steps([0.0], [5.0]), limit, 3.5),
    ]
    result = Result("vgg16", 4, "400mbit", "20gbit", 50, "made up", contests)
    name = "k = 4: DistributedOptimizer / DDP with backend gleaner"
    assert (name, pytest.approx(0.8), 0.95) in result.ratios()


@pytest.mark.parametrize("contender", ["cross", "cross-unordered", "barrier", "ddp-gleaner"])
def test_workers_with_gleaner_train(small: Path, contender: str) -> None:
    pytest.importorskip("torch")
    worker = ROOT / "bench" / "training" / "worker.py"
    done = run_job(worker, contender, "--trace", str(small), "--steps", "3", workers=2, flags=("--no-prefix",))
    assert done.returncode == 0, done.stderr
    assert_steps([json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")])


@pytest.mark.parametrize("contender", ["ddp", "after"])
def test_workers_with_gloo_train(small: Path, contender: str) -> None:
    pytest.importorskip("torch")
    from training import contenders

    loopback = ["env", "GLOO_SOCKET_IFNAME=lo"]
    assert_steps(contenders.meet([loopback, loopback], [contender, "--trace", str(small), "--steps", "3"]))
