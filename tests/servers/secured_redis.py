"""A Redis that speaks TLS alone, and knows one user."""

import shutil
from pathlib import Path

from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from bettong.config.connection_settings import RedisConnection
from bettong.local.addresses import LOOPBACK, free_ports
from bettong.local.processes import Command
from bettong.local.server import Server
from tests.servers.certificates import Authority

USER = "bettong"
SECRET = "secret-of-redis"  # noqa: S105 - of a test


class SecuredRedis(Server):
    """`connection` tells how it is reached, as the one user that there is."""

    def __init__(self, folder: Path) -> None:
        program = shutil.which("redis-server")
        assert program is not None
        self.authority = Authority(folder / "authority")
        port, pair = free_ports(1)[0], self.authority.issue()
        self.address = f"{LOOPBACK}:{port}"
        password = folder / "password"
        password.write_text(SECRET)
        self.connection = RedisConnection(f"rediss://{self.address}/0", self.authority.ca, USER, password)
        options = {
            "bind": [LOOPBACK],
            "port": ["0"],
            "tls-port": [str(port)],
            "tls-cert-file": [str(pair.certificate)],
            "tls-key-file": [str(pair.key)],
            "tls-ca-cert-file": [str(self.authority.ca)],
            "tls-auth-clients": ["no"],
            "dir": [str(folder)],
            "save": [""],
            "user": [USER, "on", f">{SECRET}", "~bettong:*", "+@all", "-@dangerous", "+info"],
        }
        words = [word for name, values in options.items() for word in (f"--{name}", *values)]
        super().__init__(
            Command("redis", (program, *words), folder / "redis.log"),
            answers=self._answers,
            start_s_max=30.0,
        )

    def _answers(self) -> bool:
        url = f"rediss://{USER}:{SECRET}@{self.address}/0?ssl_ca_certs={self.authority.ca}"
        try:
            with Redis.from_url(url) as client:
                return bool(client.ping())
        except RedisConnectionError:
            return False
