"""Estimates how the work of a model is spread over its layers, as multiply-adds computed from the sizes of the tensors.

A parameter is used once per position of its layer's output: per pixel of a feature map, or per token of a sequence. So
a layer takes (elements of its tensors) x (positions) multiply-adds per sample, for convolutions, matrices, biases and
norms alike. Operations without parameters (ReLU, pooling, softmax) and embeddings, which are looked up, count as zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby

IMAGE = 224  # width and height in pixels
Tensors = list[tuple[str, int]]  # names and elements
Work = tuple[str, Tensors, float]  # a layer's name, its tensors in the order of backward, and its multiply-adds


def layers_of(tensors: Tensors) -> list[tuple[str, Tensors]]:
    """Groups `tensors`, which are in the order of backward, by module. Returns the modules in the order of forward."""
    grouped = groupby(tensors, key=lambda tensor: tensor[0].rpartition(".")[0])
    return [(module, list(members)) for module, members in grouped][::-1]


def elements(tensors: Tensors) -> int:
    return sum(count for _, count in tensors)


def vgg(tensors: Tensors) -> Iterator[Work]:
    """Yields the layers of VGG.

    Between two convolutions there is a ReLU, or a ReLU and a pooling that halves the map. The difference of the module
    numbers shows whether there is a pooling.
    """
    side, last = IMAGE, 0
    for module, members in layers_of(tensors):
        part, number = module.split(".")
        if part == "features":
            side //= 2 if int(number) - last == 3 else 1
            last = int(number)
        yield module, members, elements(members) * (side**2 if part == "features" else 1)


def alexnet(tensors: Tensors) -> Iterator[Work]:
    """Yields the layers of AlexNet with images of 227 pixels. Poolings follow the first two convolutions."""
    for module, members in layers_of(tensors):
        part, number = module.split(".")
        side = 1 if part == "classifier" else 55 if int(number) < 4 else 27 if int(number) < 8 else 13
        yield module, members, elements(members) * side**2


def resnet(tensors: Tensors) -> Iterator[Work]:
    """Yields the layers of ResNet.

    The stem halves the map twice. The first block of layers 2 to 4 halves it in its second convolution (version 1.5).
    """
    for module, members in layers_of(tensors):
        stage, _, rest = module.partition(".")
        if stage == "fc":
            side = 1
        elif not stage.startswith("layer"):
            side = IMAGE // 2
        else:
            number = int(stage.removeprefix("layer"))
            early = number > 1 and rest in ("0.conv1", "0.bn1")
            side = IMAGE // 4 >> (number - 1 - early)
        yield module, members, elements(members) * side**2


def transformer(
    sequence: int, embeddings: tuple[str, ...], attention: str, pooler: str = "", tied_head: str = ""
) -> Callable[[Tensors], Iterator[Work]]:
    """Returns a function that yields the layers of a transformer.

    `attention` is the end of the names of layers that follow an attention; the attention's scores and sums count for
    them. `pooler` is the layer that processes a single token. `tied_head` is the embedding that is also the output
    matrix. Its gradient is complete only when backward ends."""

    def spread(tensors: Tensors) -> Iterator[Work]:
        layers = layers_of(tensors)
        for module, members in layers:
            looked_up = module in embeddings
            operations = 0 if looked_up else elements(members)
            if module.endswith(attention):
                width = min(count for _, count in members)  # elements of the bias
                operations += 2 * sequence * width
            yield module, members, float(operations * (1 if module == pooler else sequence))
        if tied_head:
            yield "head", [], float(elements(dict(layers)[tied_head]) * sequence)

    return spread
