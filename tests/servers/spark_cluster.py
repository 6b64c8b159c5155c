"""A Spark cluster of its own for tests: a master, and a worker on each of several loopback addresses.

Spark runs no speculative copy on the host where the task itself runs, so `local-cluster`, where all is one host, has
none. Linux answers on every address of 127.0.0.0/8.
"""

import os
import sys
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
import pyspark

from bettong.local.addresses import LOOPBACK, free_ports
from bettong.local.processes import Command
from bettong.local.server import Server

_START_S_MAX = 60.0
# A master and a worker do little: what starts fast is best.
_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
_HOME = Path(pyspark.__file__).parent


class SparkCluster:
    """A context manager. `master` is its address; each of its hosts has one worker of `cores` slots.

    Only the first `at_work` workers are there from the start; who wants another starts it.
    """

    def __init__(
        self, folder: Path, *, hosts: int, cores: int, memory_mb: int, at_work: int | None = None
    ) -> None:
        self._folder = folder
        port, web, *ports = free_ports(2 + hosts)
        self.master = f"spark://{LOOPBACK}:{port}"
        self._web = f"http://{LOOPBACK}:{web}/json/"
        self._at_work = hosts if at_work is None else at_work
        arguments = ["--host", LOOPBACK, "--port", str(port), "--webui-port", str(web)]
        self._master = self._server("Master", "master", arguments)
        self.workers = [
            self._server(
                "Worker",
                f"worker-{number}",
                [
                    *("--host", f"127.0.0.{2 + number}", "--webui-port", str(ports[number])),
                    *("--cores", str(cores), "--memory", f"{memory_mb}M"),
                    *("--work-dir", str(folder / f"work-{number}"), self.master),
                ],
            )
            for number in range(hosts)
        ]
        self._stack = ExitStack()

    def python_workers(self, number: int) -> list[psutil.Process]:
        """The Python processes that run the tasks of a host, without the daemon that forks them."""
        worker = self.workers[number].process
        assert worker is not None
        return [
            process
            for process in psutil.Process(worker.pid).children(recursive=True)
            if (parent := process.parent()) is not None
            and process.name().startswith("python")
            and parent.name().startswith("python")
        ]

    def __enter__(self) -> Self:
        with self._stack as stack:
            stack.enter_context(self._master)
            for index, worker in enumerate(self.workers):
                stack.callback(worker.stop)
                if index < self._at_work:
                    worker.start()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _server(self, kind: str, name: str, arguments: list[str]) -> Server:
        command = Command(
            f"Spark's {name}",
            (
                str(_HOME / "bin" / "spark-class"),
                f"org.apache.spark.deploy.{kind.lower()}.{kind}",
                *arguments,
            ),
            self._folder / f"{name}.log",
            {
                "SPARK_HOME": str(_HOME),
                "PYSPARK_PYTHON": sys.executable,
                "PATH": os.environ["PATH"],
                "SPARK_DAEMON_JAVA_OPTS": _JAVA,
                "SPARK_LAUNCHER_OPTS": _JAVA,
            },
        )
        return Server(command, answers=lambda: self._knows(name), start_s_max=_START_S_MAX)

    def _knows(self, name: str) -> bool:
        """Whether the master answers, and has the workers up to this one."""
        try:
            with urllib.request.urlopen(self._web, timeout=1) as answer:  # noqa: S310 - ours, on this machine
                found = answer.read().count(b'"state" : "ALIVE"')
        except OSError:
            return False
        return name == "master" or int(found) > int(name.removeprefix("worker-"))
