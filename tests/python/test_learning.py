"""Tests bench/learning_curves: models learn over Gleaner, and runs of different days become one table."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import LIBRARY, ROOT, TIMEOUT, environment, require_build

sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "comm-lib" / "python")]
torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")

from learning import data, worker  # noqa: E402
from learning.results import Results, Run, Setting, lines  # noqa: E402
from learning.tasks import MODES, TASKS  # noqa: E402

SHORT = ("--models", "conv", "--epochs", "5", "--ranks", "2")


def learning_curves(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "bench" / "learning_curves"), *arguments]
    variables = environment(GLEANER_BUILD=str(LIBRARY.parents[1]))
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, env=variables)


def test_modes_learn_and_their_runs_are_merged(tmp_path: Path) -> None:
    require_build()
    file, table = tmp_path / "runs.json", tmp_path / "runs.csv"
    for modes in ("dense", "dense,fp16"):
        done = learning_curves(*SHORT, "--seeds", "1", "--modes", modes, "--out", str(file), "--csv", str(table))
        assert done.returncode == 0, done.stderr
        assert ("conv, dense: seeds 1" in done.stderr) == (modes == "dense"), "it is made once"
    runs = json.loads(file.read_text())["runs"]
    assert [(run["mode"], len(run["curve"])) for run in runs] == [("dense", 5), ("fp16", 5)]
    dense, fp16 = ([point["test_accuracy"] for point in run["curve"]] for run in runs)
    assert dense[-1] > 0.8 and fp16[-1] > 0.8, "by chance it were 0.1"
    assert runs[0]["curve"][-1]["train_loss"] != runs[1]["curve"][-1]["train_loss"], "the modes differ"
    assert len(table.read_text().splitlines()) == 11
    assert "| conv (accuracy, %) | fp16 | 1 |" in done.stdout


@pytest.mark.parametrize("name", TASKS)
def test_each_model_learns_a_batch(name: str) -> None:
    task = TASKS[name]
    try:
        examples = task.examples()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    torch.manual_seed(1)
    model = task.model(examples.classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    inputs, targets = (each[:8] for each in examples.train)
    for _ in range(30):
        optimizer.zero_grad()
        loss = worker.loss_of(model(inputs), targets)
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.7 * math.log(examples.classes)


def test_texts_are_split_and_shifted_by_a_character() -> None:
    text = data.text()
    inputs, targets = text.train
    assert inputs.shape[1] == data.WINDOW and torch.equal(inputs[:, 1:], targets[:, :-1])
    assert torch.equal(inputs[1:, 0], targets[:-1, -1])
    assert len(text.test[0]) == pytest.approx(0.1 * (len(inputs) + len(text.test[0])), abs=1)
    assert text.digest == data.text().digest


SETTING = Setting("conv", ranks=4, epochs=2, data="ab")


def run(mode: str, seed: int, last: float, setting: Setting = SETTING) -> Run:
    return Run(setting, mode, seed, "1.13", {}, [{"test_accuracy": 0.5}, {"test_accuracy": last}])


def test_the_table_compares_runs_of_one_setting_by_seed(tmp_path: Path) -> None:
    results = Results(tmp_path / "runs.json")
    results.add([run("dense", 1, 0.90), run("dense", 2, 0.96), run("dense", 3, 0.99)])
    results.add([run("fp16", 1, 0.91), run("fp16", 2, 0.99), run("fp16", 1, 0.1, Setting("conv", 8, 2, "ab"))])
    results.add([run("dense", 3, 0.93)])  # replaces a run
    made = lines(Results(tmp_path / "runs.json"), SETTING, "test_accuracy", ["dense", "fp16", "none"])
    assert made == [
        "| conv (accuracy, %) | dense | 3 | 93.00 ± 3.00 |  |",
        "| conv (accuracy, %) | fp16 | 2 | 95.00 ± 5.66 | +2.00 ± 1.41 |",
    ]


def test_the_document_gets_table_and_plots(tmp_path: Path) -> None:
    if subprocess.run([sys.executable, "-c", "import matplotlib"], capture_output=True).returncode != 0:
        pytest.skip("there is no matplotlib; scripts/bootstrap bench installs it")
    setting = Setting("conv", 2, 2, data.digits().digest)
    machine = {"processors": 2, "model": "a Xeon", "kernel": "6.1", "commit": "abc"}
    file, document = tmp_path / "runs.json", tmp_path / "curves.md"
    document.write_text("before\n<!-- learning: by bench -->\nold\n<!-- end of learning -->\nafter\n")
    other = Setting("transformer", 2, TASKS["transformer"].epochs, "ab")  # of another day
    point = {"test_accuracy": 0.9, "test_loss": 2.0}
    Results(file).add(
        [Run(each, mode, 1, "1.13", machine, [point] * each.epochs) for mode in MODES for each in (setting, other)]
    )
    flags = ("--models", "conv", "--seeds", "1", "--epochs", "2", "--ranks", "2", "--out", str(file))
    plots = []
    for _ in range(2):
        done = learning_curves(*flags, "--docs", str(document))
        assert done.returncode == 0, done.stderr
        plots.append((tmp_path / "plots" / "learning-conv.svg").read_bytes())
    assert plots[0] == plots[1]
    text = document.read_text()
    assert "old" not in text and "| conv (accuracy, %) | dense | 1 | 90.00 |" in text
    assert "| transformer (loss, nats) | dense | 1 | 2.00 |" in text
    assert "![learning-conv](plots/learning-conv.svg)" in text and "PyTorch 1.13, on 2 cores of a Xeon" in text


@pytest.mark.parametrize(
    "flags, says",
    [
        (("--models", "vgg"), "no model vgg; choose among conv"),
        (("--modes", "sparse"), "no mode sparse; choose among dense"),
        (("--ranks", "0"), "must be at least 1"),
    ],
)
def test_bad_flags_are_told(flags: tuple[str, str], says: str) -> None:
    done = learning_curves(*flags)
    assert done.returncode == 2 and says in done.stderr


def test_a_file_of_another_version_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "runs.json"
    file.write_text('{"version": 0}')
    with pytest.raises(ValueError, match="write to another file"):
        Results(file)
