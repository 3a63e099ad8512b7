"""Small models of three kinds. Each maps a batch of inputs to logits, with the classes in the last dimension."""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional


class Convolutional(nn.Module):
    """Two convolutions and two linear layers for images of 8x8 pixels: about 70,000 parameters."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.hidden = nn.Linear(32 * 4 * 4, 128)
        self.output = nn.Linear(128, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        out = functional.relu(self.conv1(images))
        out = functional.max_pool2d(functional.relu(self.conv2(out)), 2)
        return self.output(functional.relu(self.hidden(out.flatten(1))))


class Residual(nn.Module):
    """Two convolutions with batch norm, and a shortcut around both (He et al. 2016)."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(after)
        self.shortcut = nn.Conv2d(before, after, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        out = functional.relu(self.norm1(self.conv1(images)))
        return functional.relu(self.norm2(self.conv2(out)) + self.shortcut(images))


class ResNet(nn.Module):
    """A ResNet of 8 layers for images of 14x14 pixels: about 78,000 parameters.

    Each rank has its own batch statistics, as with DDP.
    """

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 16, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(16)
        self.blocks = nn.Sequential(Residual(16, 16, 1), Residual(16, 32, 2), Residual(32, 64, 2))
        self.output = nn.Linear(64, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        out = self.blocks(functional.relu(self.norm(self.conv(images))))
        return self.output(out.mean((2, 3)))


class Block(nn.Module):
    """Causal self-attention and a feed-forward layer, with layer norm before each (Vaswani et al. 2017)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self._heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.mix = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        examples, length, width = states.shape
        split = self.attention(self.norm1(states)).reshape(examples, length, 3, self._heads, width // self._heads)
        queries, keys, values = split.permute(2, 0, 3, 1, 4)
        scores = queries @ keys.transpose(-2, -1) / math.sqrt(width // self._heads)
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        mixed = scores.masked_fill(later, -math.inf).softmax(-1) @ values
        states = states + self.mix(mixed.transpose(1, 2).reshape(states.shape))
        return states + self.feed(self.norm2(states))


class Transformer(nn.Module):
    """A decoder of two blocks over characters: about 120,000 parameters."""

    def __init__(self, classes: int, length: int = 64, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.characters, self.places = nn.Embedding(classes, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(Block(width, heads), Block(width, heads))
        self.norm, self.output = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, characters: torch.Tensor) -> torch.Tensor:
        states = self.characters(characters) + self.places.weight[: characters.shape[1]]
        return self.output(self.norm(self.blocks(states)))
