"""containerd's root with all images in it, made once and cloned for each node by hard links."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path

from .folders import OwnedFolder
from .processes import Child, LabError, output_of

SNAPSHOTTER = "overlayfs"
PAUSE = "gleaner.dev/lab/busybox:1"  # what holds a pod's namespaces; a shell for tests as well
BUSYBOX = Path("/usr/bin/busybox")
APPLETS = ("sh", "sleep", "cat", "wget", "nc", "nslookup", "ip", "ls", "test", "true", "false", "env", "hostname")


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    entry.mode = mode
    archive.addfile(entry, io.BytesIO(content))


def write_busybox_image(path: Path) -> None:
    """A docker-archive of Debian's static busybox; without a command of its own it sleeps."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as archive:
        _add(archive, "bin/busybox", BUSYBOX.read_bytes(), 0o755)
        for applet in APPLETS:
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            archive.addfile(link)
        # Where a pod mounts the node's /usr, the machine's programs run: these lead them to their libraries.
        for name in ("lib", "lib64"):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, f"usr/{name}"
            archive.addfile(link)
        _add(archive, "etc/passwd", b"root:x:0:0:root:/:/bin/sh\n")
    digest = hashlib.sha256(layer.getvalue()).hexdigest()
    configuration = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": ["/bin/busybox", "sleep", "inf"], "Env": ["PATH=/bin:/usr/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [PAUSE], "Layers": ["layer.tar"]}]
    with tarfile.open(path, "w") as archive:
        _add(archive, "config.json", json.dumps(configuration).encode())
        _add(archive, "manifest.json", json.dumps(manifest).encode())
        _add(archive, "layer.tar", layer.getvalue())


def clone_template(template: Path, root: Path) -> None:
    """Layers are shared, as containerd never writes to one; its databases are copied."""
    output_of("cp", "-al", str(template / "root"), str(root))
    for database in (template / "root").rglob("*.db"):
        copy = root / database.relative_to(template / "root")
        copy.unlink()
        shutil.copyfile(database, copy)


def _key(archives: Iterable[Path]) -> str:
    """Names the content by what says when it changed: hashing gigabytes would take longer than importing them."""
    stamps = [f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in archives]
    return hashlib.sha256("\n".join([PAUSE, *APPLETS, *stamps]).encode()).hexdigest()[:16]


def _import(template: Path, archives: Iterable[Path]) -> None:
    folder = OwnedFolder("gleaner-template-")  # a socket's path has to be short
    socket, configuration = folder.path / "containerd.sock", folder.path / "containerd.toml"
    configuration.write_text(
        f"""version = 2
root = "{template / "root"}"
state = "{folder.path / "state"}"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
  address = "{socket}"
"""
    )
    # It mounts what it unpacks: nobody else should see that.
    command = ["unshare", "--mount", "--propagation", "private", "--", "containerd", "-c", str(configuration)]
    daemon = Child("containerd", command, template / "containerd.log")
    daemon.start()
    client = ["ctr", "-a", str(socket), "-n", "k8s.io"]
    try:
        daemon.wait_until(lambda: subprocess.run([*client, "version"], capture_output=True).returncode == 0, 20)
        for archive in archives:
            output_of(*client, "images", "import", "--snapshotter", SNAPSHOTTER, str(archive))
    finally:
        daemon.stop(timeout=10)
        folder.release()


def provide_template(parent: Path, archives: list[Path]) -> Path:
    """The template with these archives, from an earlier time if they did not change. Older ones are removed."""
    if not BUSYBOX.exists():
        raise LabError(f"{BUSYBOX} is missing: scripts/bootstrap e2e installs it (package busybox-static)")
    template = parent / f"template-{_key([BUSYBOX, *archives])}"
    if template.is_dir():
        return template
    half = template.with_suffix(".half")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)
    busybox = half / "busybox.tar"
    write_busybox_image(busybox)
    _import(half, [busybox, *archives])
    busybox.unlink()
    for old in parent.glob("template-*"):
        if old != half:
            shutil.rmtree(old, ignore_errors=True)
    half.rename(template)
    return template
