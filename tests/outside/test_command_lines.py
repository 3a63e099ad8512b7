"""Runs command lines of `gleaner` as users write them, in shells, scripts and files that are not as clean as tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
from conftest import GLEANER, PATIENT_RUN, TIMEOUT, environment  # noqa: E402


def shell(line: str) -> subprocess.CompletedProcess[str]:
    """Runs a line of a shell in which `gleaner` is the program under test."""
    path = f"{GLEANER.parent}:{environment()['PATH']}"
    return subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, timeout=TIMEOUT, env=environment(PATH=path)
    )


@pytest.mark.parametrize("arguments", ["--help", "run --help", "--version", "bench sum --help", "completion bash"])
@pytest.mark.parametrize("output", [">/dev/full", ">&-"])
def test_lost_output_is_an_error(arguments: str, output: str) -> None:
    done = shell(f"gleaner {arguments} {output}")
    assert done.returncode == 1, done
    assert "cannot write to standard output" in done.stderr


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("run {} --workers 1 --summers 1 -- gleaner bench push-pull --bytes 8 --steps 1", "worker 0 of 1, 1 summer:"),
        ("plan --workers 1 --summers 1 --bandwidth 1Gbit --bytes 8 --collective fsdp", "1 worker, 1 summer\n"),
        ("sim --topology star:1 --algorithm ring --bytes 8 --ranks 2", "the topology has 1 host;"),
        ("ranks --topology star:1 --algorithm ring --bytes 8 --ranks 2", "the topology has 1 host;"),
    ],
)
def test_one_is_singular(line: str, words: str) -> None:
    done = shell("gleaner " + line.format(" ".join(word for pair in PATIENT_RUN.items() for word in pair)))
    assert words in done.stdout + done.stderr, done


@pytest.mark.parametrize("separator", ["--", ""])
def test_arguments_of_a_program_arrive_unchanged(separator: str) -> None:
    words = ["[1,2]", "[]", "--shape=[3, 4]", "[a b]", "{}", "%%", "", "--", "--workers", "9"]
    echo = [sys.executable, "-c", "import sys; print(sys.argv[1:])", *words]
    command = [str(GLEANER), "run", "--workers", "1", *(word for pair in PATIENT_RUN.items() for word in pair)]
    command += [separator] * bool(separator) + echo
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, env=environment())
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"[worker 0] {words}\n"


SIZES = [
    "plan --workers 2 --bandwidth 350Mb --bytes {}",
    "sim --topology star:2 --algorithm ring --bytes {}",
    "ranks --topology star:2 --algorithm ring -o explain --bytes {}",
    "strategies --topology star:2 --sizes {}",
]


@pytest.mark.parametrize("command", SIZES)
def test_bits_are_no_size(command: str) -> None:
    for size in ("350Mb", "64kb", "8b"):
        done = shell(f"gleaner {command.format(size)}")
        assert done.returncode == 2 and f"'{size}' is in bits (b)" in done.stderr, done
    understood = shell(f"gleaner {command.format('350M')}")
    assert understood.returncode == 0 and "350.00 MiB" in understood.stdout, understood


@pytest.mark.parametrize("bandwidth", ["1GB", "10GBps", "25GB/s"])
def test_bytes_are_no_bandwidth(bandwidth: str) -> None:
    done = shell(f"gleaner plan --workers 2 --bytes 1MiB --bandwidth {bandwidth}")
    assert done.returncode == 2 and f"'{bandwidth}' is in bytes (B)" in done.stderr, done


@pytest.mark.parametrize("size", ["1", "7", "4194305", "100MiB"])
@pytest.mark.parametrize(
    "command",
    [
        "strategies --topology star:4",
        "plan --workers 2 --bandwidth 1Gbit --bytes 1MiB",
        "sim --topology star:4 --algorithm ring --bytes 1MiB",
        "coordinator --workers 2 --listen 127.0.0.1:0 --token-file /nonexistent/token",
    ],
)
def test_partitions_have_the_same_limits_everywhere(command: str, size: str) -> None:
    done = shell(f"gleaner {command} --partition-bytes {size}")
    assert done.returncode == 2, done
    assert f"--partition-bytes: '{size}' is not a size from 8 bytes to 4MiB" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--bytes 7 --dtype fp32", "7 bytes, which is not a whole number of fp32 elements of 4 bytes"),
        ("--bytes 6 --dtype fp64", "6 bytes, which is not a whole number of fp64 elements of 8 bytes"),
        ("--bytes 7", "7 bytes, which is not a whole number of elements of any data type"),
        ("--bytes 8 --seed 18446744073709551616", "--seed: Value 18446744073709551616 has more than 64 bits"),
        ("--bytes 8 --seed 99999999999999999999", "--seed: Value 99999999999999999999 has more than 64 bits"),
        ("--bytes 8 --seed=-1", "--seed: Value -1 is not a number from 0 on"),
    ],
)
def test_wrong_numbers_are_named(arguments: str, message: str) -> None:
    done = shell(f"gleaner bench push-pull {arguments}")
    assert done.returncode == 2 and message in done.stderr, done
