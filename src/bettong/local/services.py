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
_STOP_S_MAX = 30.0  # the batch at work may end first


def instances(entry: ServiceEntry, count: int) -> tuple[str, ...]:
    """The names of so many processes of one service: `sender`, `sender-2`."""
    return (entry.name, *(f"{entry.name}-{number}" for number in range(2, count + 1)))


# The name of a second processor. Of two one stands by: which one, changes.
SECOND = instances(PROCESSOR, 2)[1]
# What starts when everything runs: until then it would only take the others' time.
LATER = frozenset({SECOND, CONSOLE})

# What the death of each means to who uses the suite.
MEANING = {
    "kafka": "what is in the log is safe, the others wait for it",
    "redis": "state is folded again from the log where a snapshot is gone",
    **{each.name: each.death for each in SERVICES.values()},
    **dict.fromkeys(instances(SENDER, SENDERS_MAX), SENDER.death),
    SECOND: "no result is lost or repeated; one that is left takes over",
    CONSOLE: "its page is away meanwhile, and nothing else",
}


def measured(senders: int, standby: bool) -> tuple[str, ...]:  # noqa: FBT001 - as options have it
    """The processes that tell their metrics, in the order of their ports."""
    counts = {SENDER: senders, PROCESSOR: 1 + standby}
    return tuple(name for each in SERVICES.values() for name in instances(each, counts.get(each, 1)))


class Service(Server):
    """`python -m bettong <service>`. `settings` are its settings, by their names in bettong.config.

    `name`: of this instance, where there are several of the service. `sign`: a file that it touches when it has got
    past what it died of. `arguments`: what stands behind the service on the command line.
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
        except OSError:  # it has never had to
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
    """Ready when its gRPC server says so; one that serves none, when its live record says that it runs or stands by.

    `environment`: more variables. `name`: of this instance, where there are several.
    """
    name = name or entry.name
    answers: Callable[[], bool]
    if entry.grpc_port is not None:
        answers = partial(grpc_serves, settings[entry.listen_setting])
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
    """Where a browser finds it."""
    certificate = settings.get("tls_certificate") or os.environ.get(f"{PREFIX}TLS_CERTIFICATE")
    return f"{'https' if certificate else 'http'}://{settings['console_listen']}"


def _says_that_it_runs(settings: Mapping[str, str], application: str, name: str) -> Callable[[], bool]:
    launched_s = time.time()
    connection = RedisConnection(settings["redis"], password_file=Path(settings["redis_password_file"]))

    def answers() -> bool:
        with RedisStore(connection, application) as store:
            try:
                metrics = LiveMetrics(store).live().get(name, {})
            except StoreError:
                return False
        # A processor that has all but the user's table is there: it goes on by itself. A record of an earlier run may
        # still be there, too.
        runs = metrics.get(STATE.name) in {"running", STANDBY} or bool(metrics.get(REFERENCES.name))
        return runs and float(metrics.get(SINCE.name, 0)) >= launched_s

    return answers


def spark_folders(scratch: Path) -> dict[str, str]:
    """The variables by which Spark, its Java and Python keep to a folder: a killed one leaves files behind."""
    return {
        "SPARK_LOCAL_DIRS": str(scratch),
        "TMPDIR": str(scratch),
        # Java's own: -Djava.io.tmpdir, and no file for performance tools.
        "SPARK_SUBMIT_OPTS": f"-Djava.io.tmpdir={scratch} -XX:-UsePerfData",
    }
