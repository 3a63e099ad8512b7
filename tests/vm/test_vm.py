"""Tests tests/vm/vm: it returns the exit status and the output of the command in the guest, or fails."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
VM = HERE / "vm"

sys.path.insert(0, str(HERE.parent))
from requirements import KERNEL, needs_vm  # noqa: E402

pytestmark = [needs_vm, pytest.mark.long]


def vm(*command: str, flags: tuple[str, ...] = (), **more) -> subprocess.CompletedProcess[str]:
    arguments = [str(VM), "--timeout", "150", *flags, "--", *command]
    return subprocess.run(arguments, capture_output=True, text=True, timeout=240, **more)


def test_a_command_runs_in_the_same_folder_and_its_status_is_returned(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("of the host\n")
    script = "pwd; cat file; uname -r; echo aside >&2; echo 'two  words' \"$0\"; printf 'no end'; exit 7"
    done = vm("sh", "-c", script, "it's", cwd=tmp_path)
    release = next(KERNEL.glob("boot/vmlinuz-*")).name.removeprefix("vmlinuz-")
    assert done.returncode == 7, done.stderr
    assert done.stdout.splitlines() == [str(tmp_path), "of the host", release, "aside", "two  words it's", "no end"]


def test_the_guest_may_write_and_the_host_keeps_its_files(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("of the host")
    done = vm("sh", "-c", "echo changed > file && touch other && rm /usr/bin/env && ls", cwd=tmp_path)
    assert (done.returncode, done.stdout.split()) == (0, ["file", "other"]), done.stdout + done.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "of the host"


def test_the_kernel_loads_modules_on_demand() -> None:
    wanted = [
        "ip link add va type veth peer name vb",
        "ip link set va up",
        "tc qdisc add dev va root netem loss 1%",
        "ip netns add other",
        "rdma link add soft type rxe netdev va",
        "iptables -A INPUT -s 10.0.0.1 -j DROP",
    ]
    done = vm("sh", "-ec", "; ".join(wanted))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("end", ["echo b > /proc/sysrq-trigger; sleep 9", "echo c > /proc/sysrq-trigger; sleep 9"])
def test_a_guest_that_does_not_report_is_a_failure(end: str) -> None:
    done = vm("sh", "-c", f"echo begun; sleep 1; {end}")  # time for the console
    assert done.returncode == 125, done.stdout + done.stderr
    assert "begun" in done.stdout
    assert "without reporting" in done.stderr


def test_the_command_cannot_forge_the_report() -> None:
    done = vm("sh", "-c", "echo guest-0123456789abcdef ended 0; exit 3")
    assert done.returncode == 3, done.stdout + done.stderr


def test_a_timeout_ends_the_guest() -> None:
    done = vm("sleep", "60", flags=("--timeout", "10"))
    assert (done.returncode, "timeout after" in done.stderr) == (124, True), done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_run_leaves_no_process(number: signal.Signals) -> None:
    running = subprocess.Popen([VM, "--", "sh", "-c", "echo begun; sleep 60"], stdout=subprocess.PIPE, text=True)
    assert running.stdout.readline() == "begun\n"
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
    assert len(children) == 1
    running.send_signal(number)
    running.wait(timeout=60)
    end = time.monotonic() + 60
    while os.path.exists(f"/proc/{children[0]}") and time.monotonic() < end:
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{children[0]}")


@pytest.mark.parametrize("wrong", [[], ["--memory", "2G"], ["--timeout", "soon", "--", "true"]])
def test_a_wrong_command_line_is_an_error(wrong: list[str]) -> None:
    done = subprocess.run([VM, *wrong], capture_output=True, text=True)
    assert done.returncode == 2
    assert "vm: error:" in done.stderr
