"""A service as a process of its own: its application in a file, its environment, its log and its live record."""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.local.addresses import LOOPBACK, free_ports
from bettong.local.probes import grpc_serves
from bettong.local.processes import Command
from bettong.local.server import Server
from tests.servers.fork_server import started
from tests.servers.service_program import program_of

_ROOT = Path(__file__).resolve().parent.parent.parent
_GRPC_START_S_MAX = 60.0  # two seconds alone; the machine of a test run is busy


class ServiceProcess(Server):
    """One service, with all of its files in one folder; in Redis it is the instance `<service>-1`."""

    def __init__(
        self,
        service: str,
        name: str,
        folder: Path,
        arguments: tuple[str, ...],
        settings: Mapping[str, str | None],
        *,
        kafka: str,
        redis: str,
        partitions: int,
        answers: Callable[[], bool],
        start_s_max: float,
    ) -> None:
        """`name`: of its application. `arguments`: of Python. A setting of None is left out."""
        self.name = name
        self.log = folder / f"{service}.log"
        self._redis = redis
        self._file = folder / "app.py"
        environment = {
            "BETTONG_APPLICATION": str(self._file),
            "BETTONG_KAFKA": kafka,
            "BETTONG_REDIS": redis,
            "BETTONG_PARTITIONS": str(partitions),
            "BETTONG_INSTANCE": f"{service}-1",
            "BETTONG_LIVE_INTERVAL_MS": "100",
            **settings,
        }
        given = {key: value for key, value in environment.items() if value is not None}
        super().__init__(
            Command(service, (sys.executable, *arguments), self.log, given),
            answers=answers,
            start_s_max=start_s_max,
        )

    def launch(self) -> None:
        """See Server."""
        if not self.runs():
            self.prepare()
            self.process = started(self.command)

    def application(self) -> str:
        """The text of the application's file, written before each launch."""
        raise NotImplementedError

    def prepare(self) -> None:
        """See Server."""
        self._file.write_text(self.application())

    def logged(self) -> str:
        """All that it has written to its log."""
        return self.log.read_text() if self.log.exists() else ""

    def said(self, words: str) -> int:
        """How often the words stand in the log."""
        return self.logged().count(words)

    def metrics(self) -> Mapping[str, str]:
        """The live record; empty while there is none."""
        with RedisStore(self._redis, self.name) as store:
            return live_record(store, self.command.environment["BETTONG_INSTANCE"])


class GrpcServiceProcess(ServiceProcess):
    """A sender or a receiver, which answers at `address`, of an application of the tests' samples."""

    def __init__(
        self,
        service: str,
        name: str,
        folder: Path,
        settings: Mapping[str, str | None],
        *,
        samples: str,
        keywords: str,
        connections: str,
        kafka: str,
        redis: str,
        partitions: int,
        frame_bytes_max: int,
    ) -> None:
        """The application is `samples.application(name, keywords)`, its keywords as they are written.

        `connections`: JSON, or nothing.
        """
        self.keywords = keywords
        self.address = f"{LOOPBACK}:{free_ports(1)[0]}"
        self._samples = samples
        environment: dict[str, str | None] = {
            "PYTHONPATH": os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")]),
            "BETTONG_FRAME_BYTES_MAX": str(frame_bytes_max),
            f"BETTONG_{service.upper()}_LISTEN": self.address,
        }
        if connections:
            path = folder / "connections.json"
            path.write_text(connections)
            environment["BETTONG_CONNECTIONS"] = str(path)
        super().__init__(
            service,
            name,
            folder,
            ("-c", program_of(service)),
            {**environment, **settings},
            kafka=kafka,
            redis=redis,
            partitions=partitions,
            answers=lambda: grpc_serves(self.address),
            start_s_max=_GRPC_START_S_MAX,
        )

    def application(self) -> str:
        """See ServiceProcess."""
        return (
            f"import bettong\nfrom {self._samples} import application\n"
            f"app = application({self.name!r}, {self.keywords})\n"
        )


def live_record(store: RedisStore, instance: str) -> Mapping[str, str]:
    """What an instance has written last; empty while there is nothing."""
    return LiveMetrics(store).live().get(instance, {})
