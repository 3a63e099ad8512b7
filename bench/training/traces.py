"""Traces: the times of a model's layers on a GPU, in the forward and backward pass, and the tensors of their gradients.

    /usr/bin/python3 bench/training/traces.py      writes traces/*.json from examples/models and published times

No published trace has times per layer. This program therefore spreads the published time of a whole step on one GPU
over the layers, in proportion to their multiply-adds (operations.py). Backward takes twice as many multiply-adds as
forward, for the gradients of weights and of inputs. The first layer needs no gradients of inputs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

if __package__:
    from training import operations
else:
    import operations  # run as a script

ROOT = Path(__file__).resolve().parents[2]
MODELS = ROOT / "examples" / "models"
TRACES = Path(__file__).resolve().parent / "traces"


@dataclass(frozen=True)
class Layer:
    name: str
    forward: float  # seconds
    backward: float
    tensors: tuple[tuple[str, int], ...] = ()  # names and bytes, in the order of backward

    @property
    def bytes(self) -> int:
        return sum(size for _, size in self.tensors)


@dataclass(frozen=True)
class Trace:
    source: str
    network: str  # bandwidth of the machines that the trace represents, in the notation of tc
    layers: tuple[Layer, ...]  # in the order of forward

    @property
    def bytes(self) -> int:
        return sum(layer.bytes for layer in self.layers)

    @property
    def seconds(self) -> float:
        return sum(layer.forward + layer.backward for layer in self.layers)

    def without_overlap(self) -> Trace:
        """Returns the trace of a machine whose gradients all exist only at the end of the backward pass: the last
        layer, which is the first of the backward pass, takes its whole time."""
        whole = sum(each.backward for each in self.layers)
        layers = [replace(each, backward=0.0) for each in self.layers[:-1]]
        return replace(self, layers=(*layers, replace(self.layers[-1], backward=whole)))

    def slowed(self, factor: float) -> Trace:
        """Returns the trace of a machine that takes `factor` times as long."""
        layers = [Layer(each.name, each.forward * factor, each.backward * factor, each.tensors) for each in self.layers]
        return Trace(self.source, self.network, tuple(layers))


@dataclass(frozen=True)
class Published:
    """A published step time of one GPU, and a network speed at which such a job waits for communication."""

    seconds: float
    source: str
    network: str
    spread: Callable[[operations.Tensors], Iterator[operations.Work]]


PUBLISHED = {
    "vgg16": Published(
        32 / 144,
        "TensorFlow, Benchmarks (May 2017): 144 images/s on one P100, batches of 32",
        "20gbit",
        operations.vgg,
    ),
    "alexnet": Published(
        128 / 1670,
        "Sun et al., GradientFlow (2019), section 2.3.3: 1670 images/s on one Pascal GPU, batches of 128",
        "56gbit",
        operations.alexnet,
    ),
    "resnet50": Published(
        0.163,
        "Cho et al., BlueConnect (2019), section 4: 163.0 ms on one P100, a batch of 32",
        "5gbit",
        operations.resnet,
    ),
    "gpt2_small": Published(
        0.135,
        "nanoGPT, README (2023): 135 ms an iteration of GPT-2 (124M) on an A100, sequences of 1024",
        "25gbit",
        operations.transformer(1024, ("wte", "wpe"), "attn.c_proj", tied_head="wte"),
    ),
    "bert_large": Published(
        7 / 7.56,
        "NVIDIA DeepLearningExamples, BERT README (March 2019): 7.56 sentences/s in FP32 on one V100, batches of 7; "
        "sequences of 512 are assumed",
        "10gbit",
        operations.transformer(
            512,
            ("embeddings.word_embeddings", "embeddings.position_embeddings", "embeddings.token_type_embeddings"),
            "attention.output.dense",
            pooler="pooler.dense",
        ),
    ),
}


def load(path: Path) -> Trace:
    data = json.loads(path.read_text())
    layers = [
        Layer(each["name"], each["forward"], each["backward"], tuple((name, size) for name, size in each["tensors"]))
        for each in data["layers"]
    ]
    return Trace(data["source"], data["network"], tuple(layers))


def save(trace: Trace, path: Path) -> None:
    """Writes the trace as JSON, with one line per layer."""
    head = json.dumps({"source": trace.source, "network": trace.network})[:-1]
    layers = ",\n".join(json.dumps(vars(layer)) for layer in trace.layers)
    path.write_text(f'{head}, "layers": [\n{layers}\n]}}\n')


def made_from(published: Published, listed: list[dict[str, object]]) -> Trace:
    """Makes a trace. `listed` has the names and bytes of fp32 gradients in the order of backward."""
    sizes = {str(each["name"]): int(str(each["bytes"])) for each in listed}
    work = list(published.spread([(name, size // 4) for name, size in sizes.items()]))
    backward = [(1 if place == 0 else 2) * operations for place, (_, _, operations) in enumerate(work)]
    second = published.seconds / (sum(operations for _, _, operations in work) + sum(backward))
    layers = [
        Layer(
            module,
            round(operations * second, 9),
            round(back * second, 9),
            tuple((name, sizes[name]) for name, _ in members),
        )
        for (module, members, operations), back in zip(work, backward)
    ]
    return Trace(published.source, published.network, tuple(layers))


def main() -> None:
    for name, published in PUBLISHED.items():
        save(made_from(published, json.loads((MODELS / f"{name}.json").read_text())), TRACES / f"{name}.json")


if __name__ == "__main__":
    main()
