"""A real Postgres server for tests: Debian's package, a cluster of its own, run by a user who is not root."""

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import psycopg

from bettong.errors import LocalError
from bettong.local.addresses import LOOPBACK, free_ports
from bettong.local.processes import Command
from bettong.local.server import Server

_FOLDERS = Path("/usr/lib/postgresql")
_PACKAGE_USER = "postgres"  # Debian's package makes it; the server refuses to run as root
_START_S_MAX = 60.0  # half a second alone; recovery after a crash on a busy machine takes longer
# Durability is Postgres' own affair; what counts here is what a transaction does when processes are killed.
_SETTINGS = (
    "fsync=off",
    "synchronous_commit=on",
    "max_connections=40",
    "shared_buffers=16MB",
    "dynamic_shared_memory_type=mmap",  # in its own folder: a server that is killed leaves /dev/shm as it was
)


class PostgresServer(Server):
    """Postgres on a free loopback port with the database `postgres`. Its files go when it is closed.

    Raises LocalError, with the remedy, when it is not installed: a test that needs it fails.
    """

    def __init__(self) -> None:
        self._programs = _programs()
        self.port = free_ports(1)[0]
        # Not pytest's folder: others than root may not look into that.
        self.directory = Path(tempfile.mkdtemp(prefix="bettong-postgres-"))
        self._data = self.directory / "data"
        settings = [
            *_SETTINGS,
            f"port={self.port}",
            f"listen_addresses={LOOPBACK}",
            "unix_socket_directories=",
        ]
        arguments = [word for setting in settings for word in ("-c", setting)]
        super().__init__(
            Command(
                "postgres",
                (*_as_user(), str(self._programs / "postgres"), "-D", str(self._data), *arguments),
                self.directory / "postgres.log",
            ),
            answers=self._accepts,
            start_s_max=_START_S_MAX,
        )

    @property
    def url(self) -> str:
        """Where clients connect, as one who may do everything."""
        return f"postgresql://{_PACKAGE_USER}@{LOOPBACK}:{self.port}/postgres"

    def prepare(self) -> None:
        """See Server."""
        if self._data.exists():
            return
        if os.geteuid() == 0:
            shutil.chown(self.directory, _PACKAGE_USER, _PACKAGE_USER)
        initdb = (str(self._programs / "initdb"), "-D", str(self._data), "-U", _PACKAGE_USER)
        made = subprocess.run(
            [*_as_user(), *initdb, "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C"],
            check=False,
            capture_output=True,
            text=True,
            cwd=self.directory,
        )
        if made.returncode != 0:
            raise LocalError(f"initdb failed: {made.stderr}")

    def close(self) -> None:
        """Ends it and removes its files."""
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def run(self, statement: str) -> list[tuple[object, ...]]:
        """Carries out a statement; the rows that it gives."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def _accepts(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=1).close()
        except psycopg.OperationalError:
            return False
        return True


def _programs() -> Path:
    """The folder of the newest version that is installed."""
    found = sorted(
        (path.parent for path in _FOLDERS.glob("*/bin/postgres")), key=lambda path: int(path.parent.name)
    )
    on_path = shutil.which("postgres")
    if found:
        return found[-1]
    if on_path is not None:
        return Path(on_path).resolve().parent
    raise LocalError("Postgres is not installed: run `apt-get install postgresql` as root")


def _as_user() -> tuple[str, ...]:
    """In front of a command: as the package's user when we are root; it still dies with us."""
    if os.geteuid() != 0:
        return ()
    user = pwd.getpwnam(_PACKAGE_USER)
    return (
        "setpriv",
        f"--reuid={user.pw_uid}",
        f"--regid={user.pw_gid}",
        "--clear-groups",
        "--pdeathsig=KILL",
    )
