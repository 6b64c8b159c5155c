"""Builds the disk that the virtual machine starts from, once a machine: `python -m tests.machine.building`.

Debian's kernel for clouds, Python, and the packages of the node tuner's image, by mmdebstrap; half a gigabyte in
`~/.cache/bettong`. The tuner itself is not on it: each machine gets that of the tree. Takes two minutes.
"""

import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from deploy.setup_plan import Tree, digest, uv_settings
from tests.cache import cache_folder

ROOT = Path(__file__).parents[2]
SUITE = "bookworm"  # the one of the image: Python 3.11
PACKAGES = (
    "linux-image-cloud-amd64",
    *("initramfs-tools", "iproute2", "kmod", "mount"),
    *("python3", "qemu-guest-agent", "tini"),
)
_LOCK = ROOT / "deploy" / "images" / "node-tuner.lock"
_FIRST = Path(__file__).with_name("first_process.sh")
# Nobody reads them there.
_LEFT_OUT = ("/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/man/*")
_FOLDERS = ("host/sys", "host/proc", "host/dev", "var/lib/node")
_SIZE_MB = 900
_STEP_S_MAX = 1800.0  # a minute on a machine of its own


@dataclass(frozen=True, slots=True)
class Disk:
    """What a virtual machine starts from; nothing writes to it."""

    folder: Path

    @property
    def kernel(self) -> Path:
        """Debian's kernel."""
        return self.folder / "vmlinuz"

    @property
    def initrd(self) -> Path:
        """What finds the root."""
        return self.folder / "initrd"

    @property
    def root(self) -> Path:
        """The root file system, ext4."""
        return self.folder / "root.img"


def disk() -> Disk:
    """Where the disk is, or will be."""
    parts = (SUITE, *PACKAGES, *_LEFT_OUT, *_FOLDERS, _LOCK.read_text(), _FIRST.read_text())
    return Disk(cache_folder() / f"machine-{digest(parts)[:12]}")


def build(wanted: Disk) -> None:
    """Builds the disk where it is missing, and removes those of earlier trees. Raises CalledProcessError."""
    if wanted.folder.exists():
        return
    if os.geteuid() != 0 or platform.machine() != "x86_64":
        raise SystemExit(
            "the disk of the virtual machine is built by root, on x86_64: mmdebstrap runs Debian's programs"
        )
    fresh = wanted.folder.with_name(f"{wanted.folder.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    root = fresh / "root"
    root.mkdir(parents=True)
    _say("Debian's packages")
    left_out = [f"--dpkgopt=path-exclude={path}" for path in _LEFT_OUT]
    _run(
        "mmdebstrap",
        "--quiet",
        "--variant=essential",
        f"--include={','.join(PACKAGES)}",
        *left_out,
        SUITE,
        root,
    )
    _say("the node tuner's packages")
    tree = Tree(ROOT)
    _run(
        *(tree.uv, "pip", "install", "--quiet", "--python", tree.python, "--python-version", "3.11"),
        *("--target", root / "opt/packages", "--only-binary=:all:", "--require-hashes", "--compile-bytecode"),
        *("-r", _LOCK),
    )
    for folder in _FOLDERS:
        (root / folder).mkdir(parents=True)
    shutil.copy(_FIRST, root / "sbin")
    (root / "sbin" / _FIRST.name).chmod(0o755)
    for kind in ("vmlinuz", "initrd"):
        (found,) = (root / "boot").glob(f"{kind}*")
        shutil.copy(found, fresh / kind)
    shutil.rmtree(root / "boot")
    _say("the disk")
    _run("mkfs.ext4", "-q", "-d", root, fresh / "root.img", f"{_SIZE_MB}M")
    shutil.rmtree(root)
    for old in wanted.folder.parent.glob("machine-*"):
        if old != fresh:
            shutil.rmtree(old)
    fresh.rename(wanted.folder)


def _say(what: str) -> None:
    print(f"virtual machine: {what}", flush=True)  # noqa: T201 - a program of the command line


def _run(*words: str | Path) -> None:
    done = subprocess.run(
        [str(word) for word in words],
        check=False,
        capture_output=True,
        text=True,
        timeout=_STEP_S_MAX,
        env=uv_settings(os.environ),
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: {(done.stdout + done.stderr)[-4000:]}")


if __name__ == "__main__":
    build(disk())
