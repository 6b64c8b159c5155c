"""Runs containers of images by crun, as a pod runs them: read-only, one user without capabilities, one CPU.

On the network of the machine, with its /etc/hosts, as a kubelet gives each container one of its own.
"""

import json
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bettong.local.processes import Command, Process
from bettong.local.server import Server
from tests.images.engine import Engine, Image

USER = 10001
CPU = "0"
_START_S_MAX = 180.0
_STOP_S_MAX = 60.0
_UNIFIED = Path("/sys/fs/cgroup/unified")
_SHM = "size=256m"


class Containers:
    """Containers of one test; what still runs at its end is killed."""

    def __init__(self, engine: Engine, folder: Path, stack: ExitStack, name: str) -> None:
        self._engine = engine
        self._folder = folder
        self._stack = stack
        self._name = name
        self._count = 0

    def run(self, image: Image, *words: str, **settings: str) -> Process:
        """Starts a container that ends by itself; `settings` become variables."""
        return Process(self.command(image, *words, variables=settings))

    def serve(
        self, image: Image, *words: str, answers: Callable[[], bool], variables: Mapping[str, str]
    ) -> Server:
        """A server in a container, launched."""
        command = self.command(image, *words, variables=variables)
        server = Server(command, answers=answers, start_s_max=_START_S_MAX)
        self._stack.callback(server.kill)
        server.launch()
        return server

    def command(self, image: Image, *words: str, variables: Mapping[str, str]) -> Command:
        """What runs the words (by default the image's own) in a container."""
        self._count += 1
        name = f"{self._name}-{self._count}"
        bundle = self._folder / name
        bundle.mkdir()
        root = self._stack.enter_context(self._engine.root(image))
        container = configuration(name, root, image, words, variables, {self._folder / "given": "/given"})
        (bundle / "config.json").write_text(json.dumps(container))
        self._stack.callback(self._delete, name)
        crun = ["crun", f"--root={self._state}", "run", f"--bundle={bundle}", name]
        return Command(name, tuple(on_cgroups(crun)), bundle / "log", stop_s_max=_STOP_S_MAX)

    @property
    def given(self) -> Path:
        """A folder that every container has as /given, not to be written."""
        (self._folder / "given").mkdir(exist_ok=True)
        return self._folder / "given"

    @property
    def _state(self) -> Path:
        return self._folder / "crun"

    def _delete(self, name: str) -> None:
        words = on_cgroups(["crun", f"--root={self._state}", "delete", "--force", name])
        subprocess.run(words, check=False, capture_output=True, timeout=_STOP_S_MAX)


@contextmanager
def containers(engine: Engine, folder: Path, name: str) -> Iterator[Containers]:
    """Containers named `name` and a number; nothing of them is left afterwards."""
    with ExitStack() as stack:
        made = Containers(engine, folder, stack, name)
        assert made.given.exists()
        yield made


def on_cgroups(words: list[str]) -> list[str]:
    """The words for crun, which refuses cgroups of both versions at a time: without the second, where it is beside."""
    if not _UNIFIED.is_mount():
        return words
    return ["unshare", "--mount", "sh", "-c", f"umount {_UNIFIED} && exec {shlex.join(words)}"]


def configuration(
    name: str,
    root: Path,
    image: Image,
    words: tuple[str, ...],
    variables: Mapping[str, str],
    folders: Mapping[Path, str],
) -> dict[str, Any]:
    """The container as the OCI runtime specification 1.0 writes it."""
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": USER, "gid": USER},
            "args": image.command(*words),
            "env": [f"{key}={value}" for key, value in {**image.environment, **variables}.items()],
            "cwd": "/",
            "noNewPrivileges": True,
            "capabilities": {
                kind: [] for kind in ("bounding", "effective", "permitted", "inheritable", "ambient")
            },
        },
        "root": {"path": str(root), "readonly": True},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            _memory("/dev", "mode=755"),
            _memory("/dev/shm", "mode=1777", _SHM),  # noqa: S108 - the container's
            _memory("/tmp", "mode=1777"),  # noqa: S108 - the container's
            *(_given(Path(path), path) for path in ("/etc/hosts", "/etc/resolv.conf")),
            *(_given(path, path_inside) for path, path_inside in folders.items()),
        ],
        "linux": {
            "namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc")],
            "resources": {"cpu": {"cpus": CPU}},
            "cgroupsPath": f"/{name}",
        },
    }


def _memory(path_inside: str, *options: str) -> dict[str, Any]:
    return {"destination": path_inside, "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", *options]}


def _given(path: Path, path_inside: str) -> dict[str, Any]:
    return {"destination": path_inside, "type": "bind", "source": str(path), "options": ["rbind", "ro"]}
