"""The services beside the control plane, in the lab's own network: kube-scheduler, kube-proxy and DNS."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from .processes import Child
from .spec import GATEWAY, SCHEDULER_EXTENDER, SCHEDULER_EXTENDER_PORT

EXTENDER = Path(__file__).resolve().parents[3] / "charts" / "gleaner" / "files" / "scheduler-extender.yaml"


def scheduler(programs: Path, folder: Path, kubeconfig: Path) -> Child:
    """Returns kube-scheduler, configured to use the extender as the chart tells users to do."""
    [extender] = yaml.safe_load(EXTENDER.read_text())
    extender["urlPrefix"] = f"http://{SCHEDULER_EXTENDER}:{SCHEDULER_EXTENDER_PORT}"
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 1000, "burst": 2000},
        "leaderElection": {"leaderElect": False},
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 2,
        "extenders": [extender],
    }
    file = folder / "scheduler.yaml"
    file.write_text(json.dumps(configuration))
    command = [str(programs / "kube-scheduler"), f"--config={file}", "--secure-port=0"]
    return Child("scheduler", command, folder / "scheduler.log")


def proxy(programs: Path, folder: Path, kubeconfig: Path, node: str) -> Child:
    """Returns one kube-proxy for all nodes, since the nodes' routes to Services lead through the lab.

    The Node object `node` must exist already.
    """
    configuration = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "bindAddress": GATEWAY,
        "hostnameOverride": node,
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "nftables": {"masqueradeAll": True, "minSyncPeriod": "100ms", "syncPeriod": "30s"},
        # The limits of connection tracking are the machine's, so kube-proxy must not change them.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }
    file = folder / "proxy.yaml"
    file.write_text(json.dumps(configuration))
    return Child("proxy", [str(programs / "kube-proxy"), f"--config={file}"], folder / "proxy.log")


def dns(programs: Path, folder: Path, kubeconfig: Path) -> Child:
    file = folder / "Corefile"
    file.write_text(
        f""".:53 {{
    bind {GATEWAY}
    errors
    ready {GATEWAY}:8181
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
        kubeconfig {kubeconfig} lab
    }}
}}
"""
    )
    return Child("dns", [str(programs / "coredns"), "-conf", str(file)], folder / "dns.log")
