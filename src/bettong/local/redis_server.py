"""A real Redis server for one machine."""

import shutil
from pathlib import Path

from bettong.config.connection_settings import RedisConnection
from bettong.errors import LocalError
from bettong.local.addresses import LOOPBACK, free_ports
from bettong.local.probes import redis_answers
from bettong.local.processes import Command
from bettong.local.secrets import write_private
from bettong.local.server import Server

_START_S_MAX = 30.0  # Redis reads its append-only file, which may have some GB, at the start


class RedisServer(Server):
    """Redis on a free loopback port, with its files in `directory`. It keeps its port when it is stopped and started.

    With `appendonly`, a crash of the machine loses at most the last second; without, data is lost when Redis ends.
    `password_file`: clients must authenticate with the password in it; without one, every process on this machine may
    connect. Raises LocalError when redis-server is not installed.
    """

    def __init__(
        self,
        directory: Path,
        *,
        appendonly: bool = False,
        port: int | None = None,
        password_file: Path | None = None,
    ) -> None:
        program = shutil.which("redis-server")
        if program is None:
            raise LocalError(
                "redis-server is not installed: run `bettong setup` as root, or `apt-get install redis-server`"
            )
        self.directory = directory
        self.port = port if port is not None else free_ports(1)[0]
        self._password_file = password_file
        self._settings = {
            "bind": LOOPBACK,
            "port": str(self.port),
            "dir": f'"{directory.resolve()}"',
            "save": '""',
            "appendonly": "yes" if appendonly else "no",
            "maxmemory-policy": "noeviction",
        }
        super().__init__(
            Command("redis", (program, str(self._settings_file)), directory / "redis.log"),
            answers=lambda: redis_answers(self.port, self.connection.password()),
            start_s_max=_START_S_MAX,
        )

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"redis://{LOOPBACK}:{self.port}/0"

    @property
    def connection(self) -> RedisConnection:
        """Where clients connect, and how they authenticate."""
        return RedisConnection(self.url, password_file=self._password_file)

    def prepare(self) -> None:
        """Writes the settings to a private file, for every user of the machine can read command lines."""
        self.directory.mkdir(parents=True, exist_ok=True)
        settings = dict(self._settings)
        if self._password_file is not None:
            settings["requirepass"] = self.connection.password()
        lines = "".join(f"{name} {value}\n" for name, value in settings.items())
        write_private(self._settings_file, lines.encode())

    @property
    def _settings_file(self) -> Path:
        return self.directory / "redis.conf"
