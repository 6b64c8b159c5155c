"""The services of one application as processes, each configured by its environment as in a container."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from bettong.config.connection_settings import RedisConnection
from bettong.config.service import PREFIX
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.errors import StoreError
from bettong.local.probes import grpc_serves
from bettong.local.processes import Command
from bettong.local.server import Server
from bettong.metrics import SINCE, STANDBY, STATE

# Alone, 3 s for Python with its libraries and 10 s for Spark; a busy machine takes several times as long.
_START_S_MAX = 180.0
_STOP_S_MAX = 30.0  # the batch at work may end first


# Of two processors one stands by: which one, changes.
PROCESSOR, SECOND = "processor", "processor-2"


class Service(Server):
    """`python -m bettong <service>`. `settings` are its settings, by their names in bettong.config.

    `name`: of this instance, where there are several of the service.
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
    ) -> None:
        variables = {PREFIX + key.upper(): value for key, value in {**settings, "instance": name}.items()}
        command = Command(
            name,
            (sys.executable, "-m", "bettong", service or name),
            log,
            environment={**(environment or {}), **variables},
            stop_s_max=_STOP_S_MAX,
        )
        super().__init__(command, answers=answers, start_s_max=_START_S_MAX)


def sender(settings: Mapping[str, str], logs: Path, environment: Mapping[str, str]) -> Service:
    """Ready when its gRPC server says so. `environment`: more variables, here and below."""
    address = settings["sender_listen"]
    return Service(
        "sender",
        settings=settings,
        log=logs / "sender.log",
        answers=lambda: grpc_serves(address),
        environment=environment,
    )


def receiver(settings: Mapping[str, str], logs: Path, environment: Mapping[str, str]) -> Service:
    """Ready when its gRPC server says so."""
    address = settings["receiver_listen"]
    return Service(
        "receiver",
        settings=settings,
        log=logs / "receiver.log",
        answers=lambda: grpc_serves(address),
        environment=environment,
    )


def processor(
    settings: Mapping[str, str],
    logs: Path,
    environment: Mapping[str, str],
    *,
    application: str,
    scratch: Path,
    name: str = PROCESSOR,
) -> Service:
    """Ready when its live record in Redis says that it runs or stands by. Spark's own files go to `scratch`."""
    launched_s = time.time()
    connection = RedisConnection(settings["redis"], password_file=Path(settings["redis_password_file"]))

    def answers() -> bool:
        with RedisStore(connection, application) as store:
            try:
                metrics = LiveMetrics(store).live().get(name, {})
            except StoreError:
                return False
        # A record of an earlier run may still be there.
        return (
            metrics.get(STATE.name) in {"running", STANDBY}
            and float(metrics.get(SINCE.name, 0)) >= launched_s
        )

    return Service(
        name,
        settings=settings,
        log=logs / f"{name}.log",
        answers=answers,
        environment={**spark_folders(scratch), **environment},
        service=PROCESSOR,
    )


def spark_folders(scratch: Path) -> dict[str, str]:
    """The variables by which Spark, its Java and Python keep to a folder: a killed one leaves files behind."""
    return {
        "SPARK_LOCAL_DIRS": str(scratch),
        "TMPDIR": str(scratch),
        # Java's own: -Djava.io.tmpdir, and no file for performance tools.
        "SPARK_SUBMIT_OPTS": f"-Djava.io.tmpdir={scratch} -XX:-UsePerfData",
    }
