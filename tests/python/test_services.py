"""Tests that the services of a cluster end in order on a signal, whether or not the API server answers."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from conftest import BUILD, TIMEOUT, read_until, require_build

KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: nobody, user: {}}]
contexts: [{name: none, context: {cluster: none, user: nobody}}]
current-context: none
"""
SERVICES = {
    "gleaner-agent": ["--node", "a", "--metrics", "127.0.0.1:0", "--health", "127.0.0.1:0"],
    "gleaner-scheduler-ext": ["--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"],
}
STARTED = {"gleaner-agent": "sampling this machine", "gleaner-scheduler-ext": "listening"}


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(service: str, sent: signal.Signals, tmp_path: Path) -> None:
    require_build()
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)
    command = [str(BUILD / "bin" / service), *SERVICES[service], "--kubeconfig", str(kubeconfig)]
    process = subprocess.Popen(command, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True)
    try:
        read_until(process, STARTED[service])
        process.send_signal(sent)
        said, _ = process.communicate(timeout=TIMEOUT)
        assert process.returncode == 0, said
        assert "ending on a signal" in said
    finally:
        process.kill()
        process.wait()
