"""How the work of a model is spread over its layers: multiply-adds of each, from the sizes of its tensors.

A parameter is used once per position of its layer's output: pixels of a feature map, tokens of a sequence. So a layer
takes (elements of its tensors) x (positions) multiply-adds a sample, whether it is a convolution, a matrix, a bias or
a norm. What has no parameters (ReLU, pooling, softmax) counts for nothing, and an embedding, which is looked up, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby

IMAGE = 224  # pixels of each side
Tensors = list[tuple[str, int]]  # names and elements
Work = tuple[str, Tensors, float]  # a layer, its tensors in the order of backward, and its multiply-adds


def layers_of(tensors: Tensors) -> list[tuple[str, Tensors]]:
    """Modules in the order of forward; `tensors` are in the order of backward."""
    grouped = groupby(tensors, key=lambda tensor: tensor[0].rpartition(".")[0])
    return [(module, list(members)) for module, members in grouped][::-1]


def elements(tensors: Tensors) -> int:
    return sum(count for _, count in tensors)


def vgg(tensors: Tensors) -> Iterator[Work]:
    """Between two convolutions lies a ReLU, or a ReLU and a pooling that halves the map: their numbers tell."""
    side, last = IMAGE, 0
    for module, members in layers_of(tensors):
        part, number = module.split(".")
        if part == "features":
            side //= 2 if int(number) - last == 3 else 1
            last = int(number)
        yield module, members, elements(members) * (side**2 if part == "features" else 1)


def resnet(tensors: Tensors) -> Iterator[Work]:
    """The stem halves twice; the first block of layers 2 to 4 halves in its second convolution (version 1.5)."""
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
    """`attention`: how the names of layers end that follow on an attention, whose scores and sums are theirs.

    `pooler`: the layer that looks at one token alone.
    `tied_head`: the embedding that is also the output's matrix; its gradient is whole when backward is through.
    """

    def spread(tensors: Tensors) -> Iterator[Work]:
        layers = layers_of(tensors)
        for module, members in layers:
            looked_up = module in embeddings
            operations = 0 if looked_up else elements(members)
            if module.endswith(attention):
                width = min(count for _, count in members)  # of the bias
                operations += 2 * sequence * width
            yield module, members, float(operations * (1 if module == pooler else sequence))
        if tied_head:
            yield "head", [], float(elements(dict(layers)[tied_head]) * sequence)

    return spread
