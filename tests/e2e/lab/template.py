"""The template: a root folder of containerd with all images. It is made once, and all nodes share it."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Optional

from .folders import OwnedFolder
from .processes import Child, LabError, output_of

SNAPSHOTTER = "overlayfs"
PAUSE = "gleaner.dev/lab/busybox:1"  # image of pods' sandboxes, and of test pods that need a shell
BUSYBOX = Path("/usr/bin/busybox")
IMAGE_NAME = "org.opencontainers.image.ref.name"
BLOBS = "blobs/sha256"
APPLETS = ("sh", "sleep", "cat", "ip", "ls", "test", "true", "false", "env", "hostname", "kill", "ps")


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    entry.mode = mode
    archive.addfile(entry, io.BytesIO(content))


def write_busybox_image(path: Path) -> None:
    """Writes a docker-archive with Debian's static busybox. Its default command sleeps forever."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as archive:
        _add(archive, "bin/busybox", BUSYBOX.read_bytes(), 0o755)
        for applet in APPLETS:
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            archive.addfile(link)
        # With these links the machine's programs find their libraries in pods that mount the node's /usr.
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


def snapshots(root: Path) -> Path:
    return root / f"io.containerd.snapshotter.v1.{SNAPSHOTTER}" / "snapshots"


def clone_template(template: Path, root: Path) -> None:
    """Makes a containerd root for a node.

    The root does not contain the files of the layers, so its size does not depend on them. node-init mounts the layers.
    """
    source = template / "root"
    layers = snapshots(source)

    def without_files(folder: str, names: list[str]) -> list[str]:
        return names if Path(folder).parent.parent == layers else []

    def share(path: str, copy: str) -> str:
        # containerd writes to its databases, so each node gets a copy. Blobs never change, so hard links will do.
        if path.endswith(".db"):
            return shutil.copyfile(path, copy)
        os.link(path, copy)
        return copy

    shutil.copytree(source, root, symlinks=True, ignore=without_files, copy_function=share)


@dataclass(frozen=True)
class Images:
    """An OCI image layout, as images/build makes it. A layout that does not exist has no images."""

    layout: Path

    def entries(self) -> list[dict[str, Any]]:
        index = self.layout / "index.json"
        found: list[dict[str, Any]] = json.loads(index.read_text())["manifests"] if index.exists() else []
        return found

    def stream(self, known: set[str], out: BinaryIO) -> None:
        """Writes the layout to `out` as one archive, without the blobs whose digests are in `known`."""
        entries = [
            {**entry, "annotations": {"io.containerd.image.name": entry["annotations"][IMAGE_NAME]}}
            for entry in self.entries()
        ]
        with tarfile.open(fileobj=out, mode="w|") as archive:
            _add(archive, "oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
            _add(archive, "index.json", json.dumps({"schemaVersion": 2, "manifests": entries}).encode())
            for blob in sorted((self.layout / BLOBS).iterdir()):
                if blob.name not in known:
                    archive.add(blob, f"{BLOBS}/{blob.name}")


def _import(template: Path, images: Images) -> None:
    folder = OwnedFolder("gleaner-template-")  # in /dev/shm, since a socket's path must be short
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
    # containerd mounts the layers that it unpacks. A new mount namespace hides these mounts from the machine.
    command = ["unshare", "--mount", "--propagation", "private", "--", "containerd", "-c", str(configuration)]
    daemon = Child("containerd", command, template / "containerd.log")
    daemon.start()
    client = ["ctr", "-a", str(socket), "-n", "k8s.io"]
    try:
        daemon.wait_until(lambda: subprocess.run([*client, "version"], capture_output=True).returncode == 0, 20)
        write_busybox_image(folder.path / "busybox.tar")
        output_of(*client, "images", "import", "--snapshotter", SNAPSHOTTER, str(folder.path / "busybox.tar"))
        if images.entries():
            blobs = template / "root" / "io.containerd.content.v1.content" / BLOBS
            _stream_into([*client, "images", "import", "--snapshotter", SNAPSHOTTER, "-"], images, blobs)
    finally:
        daemon.stop(timeout=10)
        folder.release()


def _stream_into(command: list[str], images: Images, blobs: Path) -> None:
    known = {blob.name for blob in blobs.iterdir()}
    importer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert importer.stdin is not None and importer.stdout is not None
    with contextlib.suppress(BrokenPipeError):  # the importer has failed, and its output, read below, has the reason
        images.stream(known, importer.stdin)
        importer.stdin.close()
    said = importer.stdout.read().decode(errors="replace")
    if importer.wait() != 0:
        raise LabError(f"`{' '.join(command)}` failed: {said.strip()}")


def _use(template: Path) -> int:
    """Locks the template against removal for as long as the returned file, or a copy of it in a child, is open."""
    lock = os.open(template / "in-use", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_SH)
    return lock


def _remove_unused(parent: Path, current: Path) -> None:
    for old in parent.glob("template-*"):
        if old == current:
            continue
        lock = _use(old)
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(old, ignore_errors=True)
        os.close(lock)


def _begin(half: Path, earlier: Optional[Path]) -> None:
    """Creates an empty template, or one with the contents of an earlier one."""
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir()
    if earlier is None:
        return
    output_of("cp", "-al", str(earlier / "root"), str(half / "root"))
    for database in (half / "root").rglob("*.db"):
        content = database.read_bytes()
        database.unlink()
        database.write_bytes(content)


def provide_template(parent: Path, images: Images) -> tuple[Path, int]:
    """Returns the template with these images, and a file that the user must keep open while using the template.

    If the images did not change, it returns the existing template. Otherwise it builds on the latest earlier template.
    """
    if not BUSYBOX.exists():
        raise LabError(f"{BUSYBOX} is missing: scripts/bootstrap e2e installs it (package busybox-static)")
    stamp = [BUSYBOX.stat().st_size, BUSYBOX.stat().st_mtime_ns, PAUSE, *APPLETS, images.entries()]
    key = hashlib.sha256(json.dumps(stamp).encode()).hexdigest()[:16]
    parent.mkdir(parents=True, exist_ok=True)
    with (parent / "templates.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        template = parent / f"template-{key}"
        if not template.is_dir():
            half = parent / "half-template"
            earlier = sorted(parent.glob("template-*"), key=lambda path: path.stat().st_mtime)
            try:
                _begin(half, earlier[-1] if earlier else None)
                _import(half, images)
            except LabError:
                if not earlier:
                    raise
                # containerd may garbage-collect contents of the earlier images that the import needs.
                _begin(half, None)
                _import(half, images)
            half.rename(template)
        used = _use(template)
        _remove_unused(parent, template)
    return template, used
