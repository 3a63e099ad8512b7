"""Creates the keys and certificates of a cluster: its CA, the API server's certificate, the service accounts' key."""

from __future__ import annotations

from pathlib import Path

from .processes import output_of

NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


def new_key(path: Path) -> None:
    output_of("openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(path))


def write_pki(folder: Path, addresses: list[str]) -> None:
    """Writes ca.crt, ca.key, apiserver.crt, apiserver.key (for `addresses`), accounts.key and accounts.pub."""
    for name in ("ca", "apiserver", "accounts"):
        new_key(folder / f"{name}.key")
    authority = ["-x509", "-key", str(folder / "ca.key"), "-subj", "/CN=gleaner-lab", "-days", "30"]
    output_of("openssl", "req", *authority, "-out", str(folder / "ca.crt"))
    request = output_of("openssl", "req", "-new", "-key", str(folder / "apiserver.key"), "-subj", "/CN=kube-apiserver")
    names = ",".join([*(f"DNS:{name}" for name in NAMES), *(f"IP:{address}" for address in addresses)])
    extensions = folder / "apiserver.ext"
    extensions.write_text(f"subjectAltName={names}\nextendedKeyUsage=serverAuth\n")
    signer = ["-CA", str(folder / "ca.crt"), "-CAkey", str(folder / "ca.key"), "-CAcreateserial", "-days", "30"]
    certificate = ["-extfile", str(extensions), "-out", str(folder / "apiserver.crt")]
    output_of("openssl", "x509", "-req", *signer, *certificate, text=request)
    output_of("openssl", "ec", "-in", str(folder / "accounts.key"), "-pubout", "-out", str(folder / "accounts.pub"))


def write_kubeconfig(path: Path, server: str, authority: Path, token: str) -> None:
    path.touch(mode=0o600)
    path.write_text(
        f"""apiVersion: v1
kind: Config
clusters:
- name: lab
  cluster:
    server: {server}
    certificate-authority: {authority}
users:
- name: lab
  user:
    token: {token}
contexts:
- name: lab
  context:
    cluster: lab
    user: lab
current-context: lab
"""
    )
