"""A real Redis server for one machine."""

import shutil
from pathlib import Path

from bettong.errors import LocalError
from bettong.local.addresses import LOOPBACK, free_ports
from bettong.local.probes import redis_answers
from bettong.local.processes import Command
from bettong.local.server import Server

_START_S_MAX = 30.0  # an append-only file of some GB is read at start


class RedisServer(Server):
    """Redis on a free loopback port, with its files in `directory`. The port stays over a stop and a start.

    With `appendonly`, a crash of the machine loses at most the last second; without, what it holds ends with it.
    Raises LocalError when redis-server is not installed.
    """

    def __init__(self, directory: Path, *, appendonly: bool = False, port: int | None = None) -> None:
        program = shutil.which("redis-server")
        if program is None:
            raise LocalError("redis-server is not installed: run `apt-get install redis-server` as root")
        self.directory = directory
        self.port = port if port is not None else free_ports(1)[0]
        settings = {
            "bind": LOOPBACK,
            "port": str(self.port),
            "dir": str(directory),
            "save": "",
            "appendonly": "yes" if appendonly else "no",
            "maxmemory-policy": "noeviction",
        }
        arguments = [text for name, value in settings.items() for text in (f"--{name}", value)]
        super().__init__(
            Command("redis", (program, *arguments), directory / "redis.log"),
            answers=lambda: redis_answers(self.port),
            start_s_max=_START_S_MAX,
        )

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"redis://{LOOPBACK}:{self.port}/0"

    def prepare(self) -> None:
        """See Server."""
        self.directory.mkdir(parents=True, exist_ok=True)
