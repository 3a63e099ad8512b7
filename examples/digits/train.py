#!/usr/bin/env python3
"""Trains a small convolutional network on scikit-learn's handwritten digits, by data parallelism through Gleaner.

    gleaner run --workers 4 --summers 2 -- python3 examples/digits/train.py

Each rank takes its share of every batch. `--reference N` trains without Gleaner, in one process: it computes the shares
of N ranks one after the other, adds their gradients in rank order in float32, and divides the sum by N. Gleaner
promises the same result, so the final parameters, whose SHA-256 is printed, are the same bit for bit.

`--device cuda` computes on this rank's GPU; ranks share GPUs if a machine has fewer GPUs than ranks. The bits are those
of `--reference N --device cuda` on the same kind of GPU. They differ from a CPU's, whose convolutions add in another
order.

`--checkpoint DIR` saves the model and the optimizer in DIR after every epoch, and resumes from a checkpoint in DIR. An
interrupted training ends with the same bits as an uninterrupted one. Only rank 0 reads and writes DIR.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional

TEST_IMAGES = 360  # of 1,797 images; the split is the same on all ranks
SEED = 7
CHECKPOINT = "digits.pt"  # in the folder that --checkpoint names


class DigitsNet(nn.Module):
    """A network that maps 8x8 images to 10 classes. It has about 150,000 parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.hidden = nn.Linear(32 * 4 * 4, 272)
        self.output = nn.Linear(272, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        out = functional.relu(self.conv1(images))
        out = functional.max_pool2d(functional.relu(self.conv2(out)), 2)
        return self.output(functional.relu(self.hidden(out.flatten(1))))


class Digits:
    """The images, with a fixed split into training and test data, and a fixed order in each epoch."""

    def __init__(self) -> None:
        digits = load_digits()
        images = torch.from_numpy((digits.images / 16.0).astype(numpy.float32)).unsqueeze(1)
        labels = torch.from_numpy(digits.target.astype(numpy.int64))
        order = torch.from_numpy(numpy.random.default_rng(SEED).permutation(len(labels)))
        self.test = images[order[:TEST_IMAGES]], labels[order[:TEST_IMAGES]]
        self._images, self._labels = images[order[TEST_IMAGES:]], labels[order[TEST_IMAGES:]]

    def batches(self, epoch: int, batch: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yields the batches of an epoch in shuffled order. Drops the last batch if it is smaller than the others."""
        order = torch.from_numpy(numpy.random.default_rng([SEED, epoch]).permutation(len(self._labels)))
        for start in range(0, len(order) - batch + 1, batch):
            chosen = order[start : start + batch]
            yield self._images[chosen], self._labels[chosen]


def shard(batch: tuple[torch.Tensor, torch.Tensor], rank: int, ranks: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns this rank's share of a batch: every `ranks`-th example, starting with number `rank`."""
    images, labels = batch
    return images[rank::ranks], labels[rank::ranks]


def device_of(model: nn.Module) -> torch.device:
    return next(model.parameters()).device


def loss_of(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    device = device_of(model)
    return functional.cross_entropy(model(images.to(device)), labels.to(device))


def accuracy(model: nn.Module, digits: Digits) -> float:
    images, labels = digits.test
    with torch.no_grad():
        return (model(images.to(device_of(model))).argmax(1).cpu() == labels).float().mean().item()


def sha256(model: nn.Module) -> str:
    """Returns the digest of all parameters, in little endian and in the model's order."""
    digest = hashlib.sha256()
    for parameter in model.state_dict().values():
        digest.update(parameter.cpu().numpy().tobytes())
    return digest.hexdigest()


def choose_device(name: str, local_rank: int) -> torch.device:
    if name == "cpu":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise SystemExit("train.py: --device cuda needs a GPU, and PyTorch finds none; use --device cpu")
    return torch.device("cuda", local_rank % torch.cuda.device_count())


def make(seed: int, rate: float, device: torch.device | str = "cpu") -> tuple[DigitsNet, torch.optim.Optimizer]:
    torch.manual_seed(seed)
    model = DigitsNet().to(device)
    return model, torch.optim.Adam(model.parameters(), lr=rate)


def load_checkpoint(folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """Loads the checkpoint in `folder`. Returns the number of finished epochs, or 0 if there is no checkpoint."""
    if not (folder / CHECKPOINT).exists():
        return 0
    saved = torch.load(folder / CHECKPOINT, map_location=device_of(model))
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    print(f"resumed after epoch {saved['epochs']} from {folder / CHECKPOINT}", flush=True)
    return saved["epochs"]


def save_checkpoint(folder: Path, epochs: int, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Writes the checkpoint atomically: if this process is killed meanwhile, `folder` keeps the previous checkpoint."""
    unfinished = folder / f"{CHECKPOINT}.{os.getpid()}"
    with unfinished.open("wb") as file:
        torch.save({"epochs": epochs, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(folder / CHECKPOINT)


def train_with_gleaner(arguments: argparse.Namespace) -> None:
    import gleaner.torch as gln

    gln.init()
    digits = Digits()
    device = choose_device(arguments.device, gln.local_rank())
    # Each rank starts with different parameters, to show that broadcast_parameters() gives all ranks those of rank 0.
    model, optimizer = make(SEED + gln.rank(), arguments.rate, device)
    optimizer = gln.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    first = 0
    if arguments.checkpoint is not None:
        done = load_checkpoint(arguments.checkpoint, model, optimizer) if gln.rank() == 0 else 0
        first = gln.broadcast_object(done, root_rank=0)
        gln.broadcast_optimizer_state(optimizer, root_rank=0)
    gln.broadcast_parameters(model.state_dict(), root_rank=0)
    start = time.monotonic()
    for epoch in range(first, arguments.epochs):
        losses = []
        for batch in digits.batches(epoch, arguments.batch):
            images, labels = shard(batch, gln.rank(), gln.size())
            optimizer.zero_grad()
            loss = loss_of(model, images, labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        mean = gln.push_pull(torch.tensor(losses).mean(), name="loss").item()
        if gln.rank() == 0:
            if arguments.checkpoint is not None:
                save_checkpoint(arguments.checkpoint, epoch + 1, model, optimizer)
            tell_epoch(epoch, arguments.epochs, mean, model, digits)
    if gln.rank() == 0:
        tell_end(arguments, model, digits, time.monotonic() - start, gln.transports())
    gln.shutdown()


def train_reference(arguments: argparse.Namespace) -> None:
    digits = Digits()
    model, optimizer = make(SEED, arguments.rate, choose_device(arguments.device, 0))
    ranks = arguments.reference
    start = time.monotonic()
    for epoch in range(arguments.epochs):
        losses = []
        for batch in digits.batches(epoch, arguments.batch):
            sums: list[torch.Tensor] = []
            for rank in range(ranks):
                images, labels = shard(batch, rank, ranks)
                loss = loss_of(model, images, labels)
                # Gradients are added and divided in host memory, as Gleaner does.
                gradients = [each.cpu() for each in torch.autograd.grad(loss, list(model.parameters()))]
                sums = [a + b for a, b in zip(sums, gradients)] if sums else list(gradients)
                losses.append(loss.item())
            for parameter, total in zip(model.parameters(), sums):
                parameter.grad = (total / ranks).to(parameter.device)
            optimizer.step()
        tell_epoch(epoch, arguments.epochs, float(numpy.mean(losses)), model, digits)
    tell_end(arguments, model, digits, time.monotonic() - start)


def tell_epoch(epoch: int, epochs: int, loss: float, model: nn.Module, digits: Digits) -> None:
    print(f"epoch {epoch + 1:2d}/{epochs}  loss {loss:.4f}  test accuracy {accuracy(model, digits):.2%}", flush=True)


def tell_end(
    arguments: argparse.Namespace, model: nn.Module, digits: Digits, seconds: float, transports: str = ""
) -> None:
    """Prints the result, and writes it to the files of --result and --save."""
    result = {
        "accuracy": accuracy(model, digits),
        "sha256": sha256(model),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "seconds": seconds,
        "transports": transports,
        "tensors": [
            {"name": name, "bytes": parameter.numel() * parameter.element_size()}
            for name, parameter in reversed(list(model.named_parameters()))
        ],
    }
    print(f"parameters' SHA-256 {result['sha256']}  test accuracy {result['accuracy']:.2%}", flush=True)
    if arguments.result is not None:
        arguments.result.write_text(json.dumps(result))
    if arguments.save is not None:
        numpy.savez(arguments.save, **{name: value.cpu().numpy() for name, value in model.state_dict().items()})


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=128, help="examples per step, over all ranks")
    parser.add_argument("--rate", type=float, default=0.004, help="learning rate")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="default: cpu")
    parser.add_argument(
        "--reference", type=int, metavar="N", help="train in one process without Gleaner, as N ranks do"
    )
    parser.add_argument("--checkpoint", type=Path, metavar="DIR", help="resume from DIR, and save in DIR")
    parser.add_argument("--result", type=Path, metavar="FILE", help="write the result as JSON")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the final parameters as .npz")
    return parser.parse_args()


if __name__ == "__main__":
    torch.set_num_threads(1)  # several workers share the machine's cores, and a single thread adds in a fixed order
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # PyTorch's deterministic algorithms need it on GPUs
    torch.use_deterministic_algorithms(True)
    chosen = parse_arguments()
    if chosen.reference is not None:
        train_reference(chosen)
    else:
        train_with_gleaner(chosen)
