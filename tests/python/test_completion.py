"""Tests that shells complete the command lines of all programs."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess

import pytest
from conftest import BUILD, GLEANER, TIMEOUT, require_build

PROGRAMS = {
    "gleaner-summer": ("--coord", "--coordinator"),
    "gleaner-agent": ("--measure-l", "--measure-listen"),
    "gleaner-operator": ("--lease", "--lease-seconds"),
    "gleaner-scheduler-ext": ("--min", "--min-bandwidth"),
}


def complete(*words: str) -> list[str]:
    """Returns bash's completions of the last word."""
    require_build()
    function = f"_{words[0].replace('-', '_')}"
    line = " ".join(f"'{word}'" for word in words)
    script = f"source <({shlex.quote(str(GLEANER))} completion bash); "
    script += f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; {function}"
    path = f"{BUILD / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script + '; printf "%s\\n" "${COMPREPLY[@]}"'],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        env={**os.environ, "PATH": path},
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["gleaner", "coord"], ["coordinator"]),
        (["gleaner", "bench", "pu"], ["push-pull"]),
        (["gleaner", "run", "--worker-b"], ["--worker-bandwidths"]),
        (["gleaner", "bench", "push-pull", "--dtype", "bf"], ["bf16"]),
        (["gleaner", "plan", "-o", "t"], ["table"]),
        (["gleaner", "plan", "--cop"], ["--copy"]),
        (["gleaner", "trace", "--p"], ["--pid"]),
        (["gleaner", "topology", "--kube"], ["--kubeconfig"]),
        (["gleaner", "topology", "-o", "s"], ["svg"]),
        (["gleaner", "ranks", "-o", "r"], ["rankfile"]),
        (["gleaner", "schedule", "--algorithm", "blue"], ["blueconnect"]),
        (["gleaner", "schedule", "--collective", "all-t"], ["all-to-all"]),
        (["gleaner", "sim", "--rank-"], ["--rank-map"]),
        (["gleaner", "run", "--workers", "2", "--", "--worker"], []),
        (["gleaner", "bench", "push-pull", "--transport"], ["--transports"]),
    ],
)
def test_completions_of_gleaner(words: list[str], offered: list[str]) -> None:
    assert complete(*words) == offered


@pytest.mark.parametrize("program", PROGRAMS)
def test_completions_of_other_programs(program: str) -> None:
    if not (BUILD / "bin" / program).exists():
        pytest.skip(f"{program} is not built")
    begun, whole = PROGRAMS[program]
    assert complete(program, begun) == [whole]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_zsh_and_fish_accept_their_completion_scripts(shell: str) -> None:
    require_build()
    script = subprocess.run([str(GLEANER), "completion", shell], capture_output=True, text=True, timeout=TIMEOUT)
    assert script.returncode == 0 and "coordinator" in script.stdout and "--completion" in script.stdout
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed, so its script is not tested")
    read = subprocess.run([shell, "-c", script.stdout], capture_output=True, text=True, timeout=TIMEOUT)
    assert read.returncode == 0 and not read.stderr, read.stderr
