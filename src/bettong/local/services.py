"""The services of one application as processes, each configured by its environment as in a container."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path

from bettong.config.connection_settings import RedisConnection
from bettong.config.sender import refusal_sign
from bettong.config.service import PREFIX
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.errors import StoreError
from bettong.local.options import SENDERS_MAX
from bettong.local.probes import grpc_serves, is_listened_to
from bettong.local.processes import Command
from bettong.local.server import Server
from bettong.metrics import REFERENCES, SINCE, STANDBY, STATE
from bettong.services import CONSOLE, PROCESSOR, SENDER, SERVICES, ServiceEntry

# Alone, 3 s for Python with its libraries and 10 s for Spark; a busy machine takes several times as long.
_START_S_MAX = 180.0
_STOP_S_MAX = 30.0  # a running batch may complete first


def instances(entry: ServiceEntry, count: int) -> tuple[str, ...]:
    """The names of `count` processes of one service: `sender`, `sender-2` ..."""
    return (entry.name, *(f"{entry.name}-{number}" for number in range(2, count + 1)))


# The name of the second processor. Either of the two may lead; the other stands by.
SECOND = instances(PROCESSOR, 2)[1]
# Services that start after all others answer: before that they would only slow the others down.
LATER = frozenset({SECOND, CONSOLE})

# What the death of each process means to the suite's user.
MEANING = {
    "kafka": "its log is safe, the other processes wait for it",
    "redis": "states are rebuilt from the log if their snapshots are lost",
    **{each.name: each.death for each in SERVICES.values()},
    **dict.fromkeys(instances(SENDER, SENDERS_MAX), SENDER.death),
    SECOND: "no result is lost or repeated; the other processor leads",
    CONSOLE: "only its page is unavailable meanwhile",
}


def measured(senders: int, standby: bool) -> tuple[str, ...]:  # noqa: FBT001 - as options have it
    """The processes that serve metrics, in the order of their ports."""
    counts = {SENDER: senders, PROCESSOR: 1 + standby}
    return tuple(name for each in SERVICES.values() for name in instances(each, counts.get(each, 1)))


class Service(Server):
    """`python -m bettong <service>`. `settings` are its settings, by their names in bettong.config.

    `name`: of this instance, where the service has several. `sign`: a file that the process touches when it has got
    past the cause of its last death. `arguments`: follow the service's name on the command line.
    """

    def __init__(
        self,
        name: str,
        *,
        settings: Mapping[str, str],
        log: Path,
        answers: Callable[[], bool],
        environment: Mapping[str, str] | None = None,
        service: str | None = None,
        sign: Path | None = None,
        arguments: tuple[str, ...] = (),
    ) -> None:
        variables = {PREFIX + key.upper(): value for key, value in {**settings, "instance": name}.items()}
        command = Command(
            name,
            (sys.executable, "-m", "bettong", service or name, *arguments),
            log,
            environment={**(environment or {}), **variables},
            stop_s_max=_STOP_S_MAX,
        )
        super().__init__(command, answers=answers, start_s_max=_START_S_MAX)
        self._sign = sign

    def progress(self) -> int:
        """See Server."""
        try:
            return self._sign.stat().st_mtime_ns if self._sign is not None else 0
        except OSError:  # the process has not touched it yet
            return 0


def service(
    entry: ServiceEntry,
    settings: Mapping[str, str],
    logs: Path,
    environment: Mapping[str, str],
    *,
    application: str,
    name: str | None = None,
) -> Service:
    """A service that is ready when its gRPC health check succeeds; without gRPC, when its live record says so.

    `environment`: additional variables. `name`: of this instance, where there are several.
    """
    name = name or entry.name
    answers: Callable[[], bool]
    if entry.grpc_port is not None:
        # BETTONG_CLIENT_CA alone may be meant for services elsewhere.
        tls = speaks_tls(settings, environment)
        answers = partial(grpc_serves, settings[entry.listen_setting], tls=tls)
    else:
        answers = _says_that_it_runs(settings, application, name)
    return Service(
        name,
        settings=settings,
        log=logs / f"{name}.log",
        answers=answers,
        environment=environment,
        service=entry.name,
        sign=refusal_sign(Path(settings["sender_marks"]), application) if entry is SENDER else None,
    )


def has_console() -> bool:
    """Whether the console is installed in this environment."""
    return bool(entry_points(group="bettong.services", name=CONSOLE))


def console(settings: Mapping[str, str], logs: Path, environment: Mapping[str, str], root: Path) -> Service:
    """The console of the suite whose record lies in `root`. Ready when it answers."""
    return Service(
        CONSOLE,
        settings=settings,
        log=logs / f"{CONSOLE}.log",
        answers=partial(is_listened_to, settings["console_listen"]),
        environment=environment,
        arguments=("--dir", str(root)),
    )


def console_url(settings: Mapping[str, str]) -> str:
    """The URL of the console's page."""
    return f"{'https' if speaks_tls(settings) else 'http'}://{settings['console_listen']}"


def speaks_tls(settings: Mapping[str, str], environment: Mapping[str, str] | None = None) -> bool:
    """Whether a service with these settings, and these variables besides its own environment, has a certificate."""
    variable = f"{PREFIX}TLS_CERTIFICATE"
    variables = {**os.environ, **(environment or {})}
    return bool(settings.get("tls_certificate", variables.get(variable)))


def _says_that_it_runs(settings: Mapping[str, str], application: str, name: str) -> Callable[[], bool]:
    launched_s = time.time()
    connection = RedisConnection(settings["redis"], password_file=Path(settings["redis_password_file"]))

    def answers() -> bool:
        with RedisStore(connection, application) as store:
            try:
                metrics = LiveMetrics(store).live().get(name, {})
            except StoreError:
                return False
        # A processor that only lacks a reference table of the user's counts: it goes on by itself. The record may
        # still be an earlier run's, which its start time shows.
        runs = metrics.get(STATE.name) in {"running", STANDBY} or bool(metrics.get(REFERENCES.name))
        return runs and float(metrics.get(SINCE.name, 0)) >= launched_s

    return answers


def spark_folders(scratch: Path) -> dict[str, str]:
    """Variables that keep temporary files of Spark, its Java and Python in one folder: killed, they leave files."""
    return {
        "SPARK_LOCAL_DIRS": str(scratch),
        "TMPDIR": str(scratch),
        # Java's own temporary folder, and no performance data file.
        "SPARK_SUBMIT_OPTS": f"-Djava.io.tmpdir={scratch} -XX:-UsePerfData",
    }
