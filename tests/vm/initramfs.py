"""Makes a guest's initramfs: busybox, /init, the kernel modules that give access to the host's files, and a job."""

from __future__ import annotations

import lzma
import stat
from pathlib import Path

# The modules for the host's files and for the overlay in memory above them. The guest loads all other modules from the
# host's files on demand.
MODULES = ["virtio_pci", "virtio_rng", "9pnet_virtio", "9p", "overlay"]


class RigError(Exception):
    """An error that the user can fix. Its message says how."""


def kernel_of(root: Path) -> tuple[Path, Path]:
    """Returns the image and the modules folder of the kernel that is unpacked in `root`."""
    images = sorted(root.glob("boot/vmlinuz-*"))
    modules = root / "lib" / "modules" / images[-1].name.removeprefix("vmlinuz-") if images else root
    if not (modules / "modules.dep").exists():
        raise RigError(f"no kernel in {root}; `scripts/bootstrap vm` puts one there")
    return images[-1], modules


def in_order(modules: Path) -> list[Path]:
    """Returns the files of MODULES and their dependencies, each after its dependencies, without built-in modules."""
    needs = {}
    for line in (modules / "modules.dep").read_text().splitlines():
        path, _, rest = line.partition(":")
        needs[path] = rest.split()
    by_name = {Path(path).name.split(".ko")[0].replace("-", "_"): path for path in needs}
    ordered: list[str] = []
    for name in MODULES:
        path = by_name.get(name)
        if path is None:
            built_in = (modules / "modules.builtin").read_text()
            if f"/{name}.ko" not in built_in:
                raise RigError(f"the kernel in {modules} has no module {name}; kernels for clouds lack some modules")
            continue
        ordered += [each for each in [*reversed(needs[path]), path] if each not in ordered]
    return [modules / path for path in ordered]


def unpacked(module: Path) -> bytes:
    return lzma.decompress(module.read_bytes()) if module.suffix == ".xz" else module.read_bytes()


class Archive:
    """An archive in cpio's format "newc", which kernels unpack."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._count = 0

    def folder(self, name: str) -> None:
        self._entry(name, stat.S_IFDIR | 0o755, b"")

    def file(self, name: str, content: bytes, mode: int = 0o644) -> None:
        self._entry(name, stat.S_IFREG | mode, content)

    def device(self, name: str, major: int, minor: int) -> None:
        self._entry(name, stat.S_IFCHR | 0o600, b"", (major, minor))

    def bytes(self) -> bytes:
        self._entry("TRAILER!!!", 0, b"")
        return bytes(self._bytes)

    def _entry(self, name: str, mode: int, content: bytes, device: tuple[int, int] = (0, 0)) -> None:
        self._count += 1
        path = name.encode() + b"\0"
        numbers = (self._count, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(path), 0)
        self._bytes += b"070701" + b"".join(b"%08x" % number for number in numbers) + path
        self._pad()
        self._bytes += content
        self._pad()

    def _pad(self) -> None:
        self._bytes += bytes(-len(self._bytes) % 4)


def make(kernel: Path, busybox: Path, init: Path, job: str) -> bytes:
    """Makes the initramfs. `job` is a shell script, and `kernel` the folder of the kernel on the host."""
    archive = Archive()
    for folder in ("bin", "dev", "proc", "modules"):
        archive.folder(folder)
    archive.device("dev/console", 5, 1)
    archive.device("dev/null", 1, 3)
    archive.file("bin/busybox", busybox.read_bytes(), 0o755)
    archive.file("init", init.read_bytes(), 0o755)
    modules = in_order(kernel_of(kernel)[1])
    archive.file("modules/order", "".join(f"{each.name}\n" for each in modules).encode())
    for each in modules:
        archive.file(f"modules/{each.name}", unpacked(each))
    archive.file("kernel", f"{kernel}\n".encode())
    archive.file("job", job.encode())
    return archive.bytes()
