"""Builds images without an engine: buildah, on a base that mmdebstrap makes, in `~/.cache/bettong/images`.

As root, for mmdebstrap and buildah mount file systems. What the base is made of, and which index and authorities a
build uses, are this machine's settings; they are mounted while it runs and stay out of the images.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cache import cache_folder
from tests.images.containerfile import PATH, ROOT

SUITE = "bookworm"  # the one with Python 3.11 and Java 17
TOOLS = ("buildah", "crun", "mmdebstrap")
_BASE = f"localhost/base-{SUITE}"
_STEP_S_MAX = 3 * 3600.0  # five minutes on a machine of its own; a busy one takes an hour
_AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
_PIP_SETTINGS = (Path("/etc/pip.conf"), Path.home() / ".config" / "pip" / "pip.conf")
_MAVEN_SETTINGS = Path.home() / ".m2" / "settings.xml"


@dataclass(frozen=True, slots=True)
class Image:
    """What an image says of itself, and how large it is unpacked."""

    name: str
    digest: str
    config: Mapping[str, Any]
    mb: int

    @property
    def environment(self) -> dict[str, str]:
        """Its variables."""
        return dict(each.split("=", 1) for each in self.config["Env"])

    def command(self, *words: str) -> list[str]:
        """What starts in it: its entry point, then the words, or its own."""
        return [*self.config["Entrypoint"], *(words or self.config["Cmd"])]


class Engine:
    """Images and their layers in a folder of a name, which the next run finds again."""

    def __init__(self, name: str) -> None:
        """Raises LookupError when this machine cannot build images, with the remedy."""
        missing = [tool for tool in TOOLS if shutil.which(tool) is None]
        if missing or os.geteuid() != 0:
            raise LookupError(f"run `make images` as root; it installs what is missing here: {missing}")
        self._folder = cache_folder() / "images"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._storage, self._mounts = self._folder / name, self._folder / f"{name}.run"

    def build(self, target: str) -> Image:
        """Builds a target, with the layers of earlier builds in this folder."""
        self._make_base()
        name = f"localhost/bettong/{target}"
        words = ["--layers", "--isolation=chroot", "--network=host", "--timestamp=0", "--pull-never"]
        words += ["--build-arg", f"BASE={_BASE}", "--volume=/etc/apt:/etc/apt:ro", *self._secrets()]
        self._buildah("build", *words, "--file", str(PATH), "--target", target, "--tag", name, str(ROOT))
        return self.image(name)

    def image(self, name: str) -> Image:
        """An image that is there."""
        said = json.loads(self._buildah("inspect", "--type=image", name))
        (listed,) = json.loads(self._buildah("images", "--json", "--filter", f"reference={name}"))
        amount, unit = listed["size"].split()
        mb = round(float(amount) * {"MB": 1, "GB": 1000}[unit])
        return Image(name, said["FromImageDigest"], said["OCIv1"]["config"], mb)

    @contextmanager
    def empty(self, *folders: Path, **variables: str) -> Iterator[list[str]]:
        """A new container of nothing but the base: the words before a command that runs in it, as root.

        It has this machine's network, its settings for apt and pip, and `folders`, not to be written, where they lie.
        It may make a network of its own, and bring its loopback up.
        """
        self._make_base()
        container = self._buildah("from", "--pull-never", _BASE).strip()
        given = {path: path for path in (Path("/etc/apt"), *folders, *filter(Path.exists, _PIP_SETTINGS))}
        given[_AUTHORITIES] = inside = Path("/run/authorities.pem")  # where no package puts its own
        try:
            yield self._words(
                "run",
                *("--isolation=chroot", "--network=host", "--cap-add=CAP_SYS_ADMIN,CAP_NET_ADMIN"),
                *(f"--volume={path}:{path_inside}:ro" for path, path_inside in given.items()),
                *(f"--env={name}={value}" for name, value in {**variables, "PIP_CERT": inside}.items()),
                *(container, "--"),
            )
        finally:
            self._buildah("rm", container)

    def clear(self) -> None:
        """Removes all images and layers; the archive of the base stays."""
        if self._storage.exists():
            self._buildah("rmi", "--all", "--force")
            shutil.rmtree(self._storage)
            shutil.rmtree(self._mounts, ignore_errors=True)

    @contextmanager
    def root(self, image: Image) -> Iterator[Path]:
        """The root of a new container of an image; it is gone afterwards, with what was written into it."""
        container = self._buildah("from", "--pull-never", image.name).strip()
        try:
            yield Path(self._buildah("mount", container).strip())
        finally:
            self._buildah("umount", container)
            self._buildah("rm", container)

    def _make_base(self) -> None:
        if self._run(self._words("inspect", "--type=image", _BASE), check=False).returncode == 0:
            return
        archive = self._folder / f"base-{SUITE}.tar"
        if not archive.exists():
            # Its lists of packages would name this machine's mirror.
            hook = '--customize-hook=rm -rf "$1"/etc/apt/sources.list*'
            fresh = archive.with_suffix(".new.tar")
            self._run(["mmdebstrap", "--quiet", "--variant=minbase", hook, SUITE, str(fresh)])
            fresh.rename(archive)
        container = self._buildah("from", "scratch").strip()
        self._buildah("add", "--quiet", container, str(archive), "/")
        self._buildah("commit", "--quiet", "--rm", "--timestamp=0", container, _BASE)

    def _secrets(self) -> list[str]:
        given = {"certificates": _AUTHORITIES, "maven": _MAVEN_SETTINGS}
        settings = os.environ.get("PIP_CONFIG_FILE") or next(filter(Path.exists, _PIP_SETTINGS), "")
        given |= {"pip": Path(settings)} if settings and Path(settings) != Path(os.devnull) else {}
        return [f"--secret=id={name},src={path}" for name, path in given.items() if path.exists()]

    def _buildah(self, *words: str) -> str:
        return self._run(self._words(*words)).stdout

    def _words(self, *words: str) -> list[str]:
        folders = [f"--root={self._storage}", f"--runroot={self._mounts}"]
        return ["buildah", *folders, "--storage-driver=overlay", *words]

    def _run(self, words: list[str], *, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=_STEP_S_MAX)
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {(done.stdout + done.stderr)[-4000:]}")
        return done
